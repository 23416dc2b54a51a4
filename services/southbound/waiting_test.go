package southbound

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// TestPortTooMany: a switch that has as many ports as it may have can change and
// replace them; one more is too many.
func TestPortTooMany(t *testing.T) {
	h := newAlone()
	s := &session{hub: h, ports: map[flow.Port]*port{}, account: h.memory.newAccount(time.Now(), nil, nil)}
	s.account.establish()
	var list []openflow.PortDesc
	for n := range portsMost {
		list = append(list, portDesc(flow.Port(n+1), true))
	}
	if err := s.addPorts(list); err != nil {
		t.Fatal(err)
	}
	extra := portDesc(portsMost+1, true)
	for _, step := range []struct {
		reason openflow.PortReason
		desc   *openflow.PortDesc
		over   bool
	}{
		{openflow.PortAdded, &extra, true}, {openflow.PortModified, &list[0], false}, {openflow.PortDeleted, &list[0], false},
		{openflow.PortAdded, &extra, false}, {openflow.PortAdded, &list[0], true},
	} {
		err := s.portStatus(step.reason, step.desc)
		if e := (*excess)(nil); errors.As(err, &e) != step.over || step.over && e.bound != boundPorts {
			t.Errorf("port %v, reason %d: %v", step.desc.No, step.reason, err)
		}
	}
	if held, _ := h.memory.size(); held != portsMost*portBytes {
		t.Errorf("%d octets are held", held)
	}
}

// TestRefusalsAreBounded: errors without end about one message are no more kept
// than an answer is.
func TestRefusalsAreBounded(t *testing.T) {
	m := newMemory(1<<20, 1<<20)
	a := m.newAccount(time.Now(), nil, nil)
	a.establish()
	w := &waits{account: a}
	p, err := w.add(10, 2)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		waited, err := w.refuse(openflow.Error{Xid: 9})
		if err != nil {
			if e := err.(*excess); e.bound != boundAnswer {
				t.Error(err)
			}
			break
		}
		if !waited || n > m.session {
			t.Fatal(fmt.Sprint("kept: ", n))
		}
	}
	<-p.done
	if held, _ := m.size(); p.err == nil || held != 0 {
		t.Errorf("%v; %d octets are held", p.err, held)
	}
}
