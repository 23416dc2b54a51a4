package southbound

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// printable reports a text that tables, terminals and encodings can take.
func printable(t *testing.T, what, text, want string) {
	t.Helper()
	if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\t\x1b\u009b\u202e") || text != want {
		t.Errorf("%s is %q, want %q", what, text, want)
	}
}

// TestHostileTexts: what a switch calls itself and its ports cannot be passed
// on as it comes. Octets that are no UTF-8 have no form in protobuf: one such
// name would keep lists of all switches from everybody. Line feeds and escape
// sequences would forge lines of tables, and command who looks at them.
func TestHostileTexts(t *testing.T) {
	const bad = "a\n\x1b[2J\xff\xc2\u202e"
	const good = "a\ufffd\ufffd[2J\ufffd\ufffd\ufffd"
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1, Desc: openflow.Desc{Manufacturer: bad, Hardware: bad, Software: bad, Serial: bad, Datapath: bad}})
		resp, err := wefttest.Call(w.h, api.ListSwitches, &api.ListSwitchesRequest{})
		if err != nil || len(resp.Switches) != 1 {
			t.Fatalf("%v, %v", resp, err)
		}
		s := resp.Switches[0]
		for _, text := range []string{s.Manufacturer, s.Hardware, s.Software, s.Serial, s.Description} {
			printable(t, "description", text, good)
		}
		d, err := wefttest.Call(w.h, api.ReadMultipart, &api.ReadMultipartRequest{Dpid: flow.DPID(1).String(), Kind: api.Multipart_MULTIPART_DESC})
		if err != nil {
			t.Fatal(err)
		}
		printable(t, "description read", d.Desc.Software, good)

		c := w.joined(9)
		desc := portDesc(7, true)
		desc.Name = bad
		c.send(v13.AppendPortStatus(nil, 0, openflow.PortAdded, &desc))
		e := wefttest.Await(w.h, api.PortChangedEvent, func(e *api.PortChanged) bool { return e.Port.Port == 7 })
		printable(t, "event of the port", e.Port.Name, good)
		ports, err := wefttest.Call(w.h, api.ListPorts, &api.ListPortsRequest{Dpid: flow.DPID(9).String()})
		if err != nil || len(ports.Ports) != 3 {
			t.Fatalf("%v, %v", ports, err)
		}
		printable(t, "port", ports.Ports[2].Name, good)
		w.works(1)
	})
}
