package openflow

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// controllerActions are flows that send packets to one of several controllers.
// ovs-ofctl 3.1 makes an output of what says neither a number nor a reason.
var controllerActions = []struct {
	text, octets string
	action       flow.Controller
}{
	{"controller(id=1)", "ffff0010000023200014ffff00010100", flow.Controller{ID: 1, MaxLen: flow.NoBuffer, Reason: flow.ReasonAction}},
	{"controller(reason=no_match,max_len=128,id=513)", "ffff0010000023200014008002010000", flow.Controller{ID: 513, MaxLen: 128, Reason: flow.ReasonNoMatch}},
	{"controller(reason=invalid_ttl,id=65535)", "ffff0010000023200014ffffffff0200", flow.Controller{ID: 65535, MaxLen: flow.NoBuffer, Reason: flow.ReasonInvalidTTL}},
}

// TestControllerAsOpenVSwitch compares, octet for octet, what ovs-ofctl sends
// for the action controller with what is encoded.
func TestControllerAsOpenVSwitch(t *testing.T) {
	var lines []string
	for _, c := range controllerActions {
		lines = append(lines, "actions="+c.text)
	}
	for _, ver := range versions {
		got, _ := ofctl(t, ver.v, plainAnswer, "add-flows", "SWITCH", flowFile(t, lines))
		if len(got) != len(lines) {
			t.Fatalf("OpenFlow %s: %d messages of %d", ver.name, len(got), len(lines))
		}
		for i, c := range controllerActions {
			var m flow.Mod
			if err := ver.v.DecodeFlowMod(got[i], &m); err != nil {
				t.Fatal(err)
			}
			if len(m.Entry.Apply) != 1 || m.Entry.Apply[0] != c.action.Action() || flow.FormatActions(m.Entry.Apply) != c.text {
				t.Errorf("OpenFlow %s: %s is read as %v", ver.name, c.text, m.Entry.Apply)
			}
			octets, _ := hex.DecodeString(c.octets)
			again, err := ver.v.AppendFlowMod(nil, be.Uint32(got[i][4:]), &m)
			if err != nil || !bytes.HasSuffix(got[i], octets) || !bytes.HasSuffix(again, octets) || ver.v == V13 && !bytes.Equal(again, got[i]) {
				t.Errorf("OpenFlow %s: %s:\nencoded %x\novs-ofctl %x (%v)", ver.name, c.text, again, got[i], err)
			}
		}
	}
}

// TestSetControllerID has ovs-ofctl read the message that numbers a connection;
// the octets are those of Open vSwitch's tests/ofp-print.at.
func TestSetControllerID(t *testing.T) {
	for _, c := range []struct {
		v      Version
		octets string
	}{
		{V10, "010400180000000300002320000000140000000000000" + "07b"},
		{V13, "040400180000000300002320000000140000000000000" + "07b"},
	} {
		msg, err := c.v.AppendSetControllerID(nil, 3, 123)
		if err != nil || hex.EncodeToString(msg) != c.octets {
			t.Errorf("%v: %x (%v)", c.v, msg, err)
		}
		file := filepath.Join(t.TempDir(), "message")
		if err := os.WriteFile(file, msg, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := run(t, "ovs-ofctl", "ofp-parse", file); !strings.Contains(got, "NXT_SET_CONTROLLER_ID") || !strings.Contains(got, "id=123") {
			t.Errorf("%v: ovs-ofctl reads %q", c.v, got)
		}
		if id, ok, err := c.v.DecodeSetControllerID(msg); id != 123 || !ok || err != nil {
			t.Errorf("%v: read as %d %v %v", c.v, id, ok, err)
		}
		for n := range msg {
			if id, ok, _ := c.v.DecodeSetControllerID(msg[:n]); ok {
				t.Errorf("%v: %d octets are read as number %d", c.v, n, id)
			}
		}
		other, _ := c.v.AppendExperimenter(nil, 1, &Experimenter{ID: 77, Data: make([]byte, 12)})
		if _, ok, err := c.v.DecodeSetControllerID(other); ok || err != nil {
			t.Errorf("%v: another experimenter's message is read, %v", c.v, err)
		}
	}
}
