package session

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// TestPortTooMany: a switch that has as many ports as it may have can change and
// replace them; one more is too many.
func TestPortTooMany(t *testing.T) {
	h := newAlone()
	ports := portTable{channel: &channel{shared: h, account: h.memory.NewAccount(time.Now(), nil, nil)}, known: map[flow.Port]*port{}}
	ports.account.Establish()
	var list []openflow.PortDesc
	for n := range admission.PortsMost {
		list = append(list, openflow.PortDesc{No: flow.Port(n + 1)})
	}
	if err := ports.addPorts(list); err != nil {
		t.Fatal(err)
	}
	extra := openflow.PortDesc{No: admission.PortsMost + 1}
	for _, step := range []struct {
		reason openflow.PortReason
		desc   *openflow.PortDesc
		over   bool
	}{
		{openflow.PortAdded, &extra, true}, {openflow.PortModified, &list[0], false}, {openflow.PortDeleted, &list[0], false},
		{openflow.PortAdded, &extra, false}, {openflow.PortAdded, &list[0], true},
	} {
		err := ports.record(step.reason, step.desc)
		if e := (*admission.Excess)(nil); errors.As(err, &e) != step.over || step.over && e.Bound != admission.BoundPorts {
			t.Errorf("port %v, reason %d: %v", step.desc.No, step.reason, err)
		}
	}
	if held, _ := h.memory.Size(); held != admission.PortsMost*PortBytes {
		t.Errorf("%d octets are held", held)
	}
}

// TestRefusalsAreBounded: errors without end about one message are no more kept
// than an answer is.
func TestRefusalsAreBounded(t *testing.T) {
	m := admission.NewMemory(1<<20, 1<<20)
	a := m.NewAccount(time.Now(), nil, nil)
	a.Establish()
	w := &waits{account: a}
	p, err := w.add(10, 2)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		waited, err := w.refuse(openflow.Error{Xid: 9})
		if err != nil {
			if e := err.(*admission.Excess); e.Bound != admission.BoundAnswer {
				t.Error(err)
			}
			break
		}
		if !waited || n > m.Session {
			t.Fatal(fmt.Sprint("kept: ", n))
		}
	}
	<-p.done
	if held, _ := m.Size(); p.err == nil || held != 0 {
		t.Errorf("%v; %d octets are held", p.err, held)
	}
}
