package oftest

import (
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// TestControllerNumbers: a packet-in goes to the connections with the number
// that the action names, and to slaves only if they have asked for it.
func TestControllerNumbers(t *testing.T) {
	s := New(Config{Nicira: true})
	main, intake := connect(t, s, v13), connect(t, s, v13)
	main.role(openflow.RoleMaster, 5)
	intake.role(openflow.RoleSlave, 5)
	intake.fine(intake.send(v13.AppendSetControllerID(nil, intake.next(), 9)))
	async := openflow.Async{PacketIn: [2]uint32{0, 1<<flow.ReasonNoMatch | 1<<flow.ReasonAction}}
	intake.fine(intake.send(v13.AppendSetAsync(nil, intake.next(), &async)))
	main.add(flow.Entry{Apply: []flow.Action{flow.ToController(9, flow.ReasonNoMatch)}})
	main.add(flow.Entry{Priority: 1, Match: flow.Match{}.WithInPort(2), Apply: []flow.Action{flow.ToController(0, flow.ReasonAction)}})
	main.add(flow.Entry{Priority: 1, Match: flow.Match{}.WithInPort(3), Apply: []flow.Action{flow.ToController(8, flow.ReasonAction)}})
	for port, want := range map[flow.Port][2]int{1: {0, 1}, 2: {1, 0}, 3: {0, 0}} {
		e := s.Receive(port, udp(1, 2))
		if got := [2]int{len(main.packetIns(e)), len(intake.packetIns(e))}; got != want {
			t.Errorf("port %d: %v packet-ins, want %v", port, got, want)
		}
	}
	without := New(Config{})
	c := connect(t, without, v13)
	msg, err := v13.AppendSetControllerID(nil, c.next(), 9)
	c.wantError(c.send(msg, err), openflow.ErrBadRequest, openflow.BadRequestBadExperimenter)
	c.wantError(c.mod(flow.Mod{Entry: flow.Entry{Apply: []flow.Action{flow.ToController(9, 0)}}}), openflow.ErrBadAction, openflow.BadActionBadExperimenter)
}
