package lab

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/traffic"
)

const appliedNodes = `
name: nodes
controller: none
switches:
  - {name: pe1, kind: hybrid}
  - {name: cr1, kind: router}
  - {name: pe2, kind: hybrid}
  - {name: cr2, kind: router}
hosts:
  - {name: ce1, switch: pe1, gateway: true}
  - {name: ce2, switch: pe2, gateway: true}
links:
  - {a: pe1, b: cr1}
  - {a: cr2, b: pe1}
  - {a: pe2, b: cr1}
`

// With a router deleted, and a hybrid node with a customer and a bridge added.
const moreNodes = `
name: nodes
controller: none
switches:
  - {name: pe3, kind: hybrid}
  - {name: b1, kind: bridge}
  - {name: pe1, kind: hybrid}
  - {name: cr1, kind: router}
  - {name: pe2, kind: hybrid}
hosts:
  - {name: ce1, switch: pe1, gateway: true}
  - {name: ce2, switch: pe2, gateway: true}
  - {name: ce3, switch: pe3, gateway: true}
links:
  - {a: pe3, b: b1}
  - {a: b1, b: cr1}
  - {a: pe3, b: pe1}
  - {a: pe1, b: cr1}
  - {a: pe2, b: cr1}
routing: {dead: 5s, bfd: 1s}
`

// Hybrid nodes, routers, bridges, their routing and the way to controllers change in a
// running lab: what is not of it loses no packet.
func TestApplyNodes(t *testing.T) {
	t.Parallel()
	l := upForTest(t, parsed(t, appliedNodes, nil), Options{Weft: testprogram.Weft(t)})
	port := freePort(t)
	startTestController(t, "ptcp:"+port+":127.0.0.1")
	settled := func(n nodes.NodeStatus) bool { return routed(n) && n.Control != "disconnected" }
	awaitNodes(t, l, "routed", settled)
	awaitPing(t, l, "ce1", "ce2", false)
	router := strings.Replace(moreNodes, "name: pe3, kind: hybrid", "name: pe3, kind: router", 1)
	inBand := strings.Replace(router, "controller: none", "controller: tcp:127.0.0.1:"+port, 1) + "control: {mode: in-band, at: cr1}\n"
	for _, step := range []struct {
		what, text string
		others     bool // are untouched
		anew       string
	}{
		{"more nodes", moreNodes, true, ""},
		{"a router that was a hybrid node", router, true, "switch pe3: kind from hybrid to router: made anew, for a switch of another kind is another device"},
		{"controllers in band", inBand, false, ""}, // a bridge that gets its first controller loses its entries for a moment
		{"elsewhere", strings.Replace(inBand, "at: cr1", "at: pe2", 1), true, ""},
		{"an Open vSwitch each", inBand + "ovs: own\n", false, "switch pe1: ovs from shared to own: made anew, for it gets another Open vSwitch"},
		{"as at first", appliedNodes, false, ""},
	} {
		pinged := make(chan traffic.PingResult, 1)
		ctx, stop := context.WithCancel(t.Context())
		if step.others {
			go func() {
				r, _ := l.Ping(ctx, "ce1", "ce2", traffic.PingOptions{Count: 300, Interval: 10 * time.Millisecond})
				pinged <- r
			}()
			time.Sleep(100 * time.Millisecond)
		}
		began := time.Now()
		d, err := Apply(t.Context(), "f.yaml", []byte(step.text), ApplyOptions{Name: l.Name()})
		if err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		t.Logf("%s: %v", step.what, time.Since(began))
		said := ""
		for _, e := range d.Changed {
			said += e.String() + "\n"
		}
		if !strings.Contains(said, step.anew) {
			t.Errorf("%s: said %s, want %s", step.what, said, step.anew)
		}
		if step.others {
			if r := <-pinged; r.Received != r.Sent || r.Sent == 0 {
				t.Errorf("%s: of %d packets between hosts that were not touched, %d came (%s)", step.what, r.Sent, r.Received, r.Error)
			}
		}
		stop()
		now, err := Open(l.Name())
		if err != nil {
			t.Fatal(err)
		}
		l = now
		if d, err := Apply(t.Context(), "f.yaml", []byte(step.text), ApplyOptions{Name: l.Name()}); err != nil || !d.None() {
			t.Errorf("%s: applied again: %+v, %v", step.what, d, err)
		}
		awaitNodes(t, l, "routed with "+step.what, settled)
		for _, six := range []bool{false, true} {
			awaitPing(t, l, "ce1", "ce2", six)
			if strings.Contains(step.text, "ce3") {
				awaitPing(t, l, "ce3", "ce2", six)
			}
		}
		t.Logf("%s: routed after %v", step.what, time.Since(began))
	}
}

// Killed among its nodes, an apply is completed by another, to the same or another file.
func TestApplyNodesCompletes(t *testing.T) {
	t.Parallel()
	l := upForTest(t, parsed(t, appliedNodes, nil), Options{Weft: testprogram.Weft(t)})
	router := strings.Replace(moreNodes, "name: pe3, kind: hybrid", "name: pe3, kind: router", 1)
	router = strings.Replace(router, "{a: pe1, b: cr1}", "{a: pe1, b: cr1, mtu: 1400}", 1)
	for _, step := range []struct {
		at          int
		cut, text   string
		three, kill bool
	}{
		{3, moreNodes, moreNodes, true, true},
		{2, router, router, true, true},
		{7, moreNodes, router, true, false},
		{5, appliedNodes, moreNodes, true, true},
		{9, router, appliedNodes, false, true},
	} {
		if err := applyUntil(t, l.Name(), step.cut, step.at, step.kill); err == nil {
			t.Fatalf("%+v: nothing was cut off", step)
		}
		for _, dry := range []bool{false, true} {
			d, err := Apply(t.Context(), "f.yaml", []byte(step.text), ApplyOptions{Name: l.Name(), DryRun: dry})
			if err != nil || d.None() != dry {
				t.Fatalf("after %d steps, dry run %v: %+v, %v", step.at, dry, d, err)
			}
		}
		now, err := Open(l.Name())
		if err != nil {
			t.Fatal(err)
		}
		awaitNodes(t, now, "routed", routed)
		awaitPing(t, now, "ce1", "ce2", true)
		if step.text != router { // no port has the smaller MTU
			wantPing(t, now, "ce1", "ce2", traffic.PingOptions{Count: 1, Size: 1472}, 1, 1)
		}
		if step.three {
			awaitPing(t, now, "ce3", "ce2", false)
		}
	}
}
