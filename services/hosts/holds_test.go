package hosts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// shelved is a rig whose holds are kept.
type shelved struct {
	*rig
	*holdPersister
}

func newShelved(t *testing.T) *shelved {
	return restarted(t, newBucket(t), newBucket(t))
}

// restarted is a rig that begins with what was kept.
func restarted(t *testing.T, hosts, holds *counting) *shelved {
	r := newRig(t, nil)
	s := &holdPersister{journal{store: holds}}
	bad := func(key string, err error) { t.Errorf("%s: %v", key, err) }
	if err := s.load(t.Context(), &r.holds, bad); err != nil {
		t.Fatal(err)
	}
	s.run = r.load(hosts)
	return &shelved{r, s}
}

func (s *shelved) hold(stage string, at ...flow.Location) {
	s.t.Helper()
	m := &api.HostHold{Stage: stage}
	for _, l := range at {
		m.At = append(m.At, api.NewLocation(l))
	}
	if _, err := s.set(s.t.Context(), &s.holds, s.now, m); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelved) yes(stage string, m flow.MAC) error {
	_, err := s.approve(s.t.Context(), &s.holds, &api.ApproveHostRequest{Stage: stage, Mac: m.String()})
	return err
}

func (s *shelved) no(stage string, m flow.MAC) {
	s.t.Helper()
	if r, err := s.revoke(s.t.Context(), &s.holds, &api.RevokeHostRequest{Stage: stage, Mac: m.String()}); err != nil || !r.Revoked {
		s.t.Fatalf("%v, %v", r, err)
	}
}

// wantHeld checks by whom a packet between two hosts is held.
func (s *shelved) wantHeld(l flow.Location, frame []byte, stages ...string) {
	s.t.Helper()
	in := s.accept(l, frame)
	if !slices.Equal(in.HeldBy, stages) || in.Unapproved != (len(stages) > 0) {
		s.t.Errorf("packet held by %v (%v), want %v", in.HeldBy, in.Unapproved, stages)
	}
}

// Packets from and to a host are held by all stages that have not approved it;
// what has changed is published.
func TestHoldsBothDirections(t *testing.T) {
	s := newShelved(t)
	one, two := at(1, 1), at(2, 1)
	there, back := udp(mac(1), mac(2), "10.0.0.1", "10.0.0.2"), udp(mac(2), mac(1), "10.0.0.2", "10.0.0.1")
	s.accept(two, arpRequest(mac(2), "10.0.0.2", "10.0.0.9"))
	s.wantHeld(one, there)
	s.hold("portal")
	s.hold("badges", at(1, 0))
	s.wantHeld(one, there, "portal", "badges")
	s.wantHeld(two, back, "portal", "badges") // by its destination
	s.wantHeld(two, udp(mac(2), mac(9), "10.0.0.2", "10.0.0.9"), "portal")
	s.changes()
	for _, m := range []flow.MAC{mac(1), mac(2)} {
		if err := s.yes("portal", m); err != nil {
			t.Fatal(err)
		}
	}
	s.wantChanges("held "+mac(1).String()+" "+one.String(), "held "+mac(2).String()+" "+two.String())
	if got := s.events[len(s.events)-2].Host.HeldBy; !slices.Equal(got, []string{"badges"}) {
		t.Errorf("published as held by %v", got)
	}
	s.wantHeld(two, back, "badges")
	s.hold("badges", at(2, 7)) // other places
	s.wantHeld(one, there)
	s.no("portal", mac(2))
	s.wantHeld(one, there, "portal")
	s.wantHeld(one, arpRequest(mac(1), "10.0.0.1", "10.0.0.2"), "portal") // whom it is about
	if r, err := s.drop(t.Context(), &s.holds, "portal"); err != nil || !r.Deleted {
		t.Fatal(r, err)
	}
	s.wantHeld(one, there)
}

// A host that moves is held by the places' stages, from its first packet there.
func TestHoldFollowsMoves(t *testing.T) {
	s := newShelved(t)
	s.hold("portal", at(1, 0), at(2, 5))
	frame := udp(mac(1), mac(9), "10.0.0.1", "10.0.0.9")
	s.wantHeld(at(1, 3), frame, "portal")
	s.portChanged(s.now, 1, portMsg(1, 3, false), false)
	s.wantHeld(at(2, 4), frame)
	s.portChanged(s.now, 2, portMsg(2, 4, false), false)
	s.wantHeld(at(2, 5), frame, "portal")
}

// What was approved, and what not, is the same after a restart, whether the host
// is known or not.
func TestHoldsAreKept(t *testing.T) {
	hosts, holds := newBucket(t), newBucket(t)
	s := restarted(t, hosts, holds)
	s.hold("portal")
	s.hold("badges")
	for n := range byte(200) {
		if err := s.yes("portal", mac(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.yes("badges", mac(1)); err != nil {
		t.Fatal(err)
	}
	s.no("portal", mac(2))
	s.accept(at(1, 1), udp(mac(3), mac(9), "10.0.0.3", "10.0.0.9"))
	s.publishMarked(s.now, nil, func(*api.HostChanged) {})
	if err := s.holdPersister.run.save(t.Context(), s.table); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(s.holds.list(""))

	next := restarted(t, hosts, holds)
	if got := fmt.Sprint(next.holds.list("")); got != want {
		t.Errorf("after a restart\n%s, want\n%s", got, want)
	}
	next.wantHeld(at(1, 1), udp(mac(1), mac(9), "10.0.0.1", "10.0.0.9"))
	next.wantHeld(at(1, 1), udp(mac(2), mac(9), "10.0.0.2", "10.0.0.9"), "portal", "badges")
	next.wantHeld(at(1, 1), udp(mac(3), mac(9), "10.0.0.3", "10.0.0.9"), "badges")
	if _, err := next.drop(t.Context(), &next.holds, "portal"); err != nil {
		t.Fatal(err)
	}
	next.hold("portal") // begins anew
	third := restarted(t, hosts, holds)
	third.wantHeld(at(1, 1), udp(mac(1), mac(9), "10.0.0.1", "10.0.0.9"), "portal")
	if err := next.yes("portal", mac(1)); err == nil || !strings.Contains(err.Error(), errSuperseded.Error()) {
		t.Errorf("an instance whose successor has started approves: %v", err)
	}
}

// What is malformed, or too much, is refused and changes nothing.
func TestHoldsAreChecked(t *testing.T) {
	s := newShelved(t)
	for name, m := range map[string]*api.HostHold{
		"name":   {Stage: "Portal"},
		"empty":  {},
		"path":   {Stage: "../x"},
		"switch": {Stage: "portal", At: []*api.Location{{Dpid: "x"}}},
		"port":   {Stage: "portal", At: []*api.Location{{Dpid: "1", Port: uint32(flow.PortController)}}},
		"many":   {Stage: "portal", At: make([]*api.Location, holdPlaces+1)},
	} {
		if _, err := s.set(t.Context(), &s.holds, s.now, m); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
	if err := s.yes("portal", mac(1)); api.KindOf(err) != codes.NotFound {
		t.Errorf("approved without a hold: %v", err)
	}
	for n := range flow.MaxHolds {
		s.hold(fmt.Sprint("stage-", n))
	}
	if _, err := s.set(t.Context(), &s.holds, s.now, &api.HostHold{Stage: "ninth"}); api.KindOf(err) != codes.ResourceExhausted {
		t.Errorf("the ninth: %v", err)
	}
	if err := s.yes("stage-0", flow.MAC{1}); api.KindOf(err) != codes.InvalidArgument {
		t.Errorf("a group address approved: %v", err)
	}
}
