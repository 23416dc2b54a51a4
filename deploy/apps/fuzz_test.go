package apps

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/localsocket"
)

// FuzzFrame: whatever a WebSocket sends, it is a frame of one kind or an error.
func FuzzFrame(f *testing.F) {
	for _, seed := range []string{`{"hello":{"name":"a"}}`, `{"decisions":{"id":"1","decisions":[{}]}}`, `{"id":1,"call":"a.B","request":{}}`, `{}`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, err := parseFrame(data)
		if err != nil {
			return
		}
		switch {
		case frame.Call != "":
			if _, err := frame.ID.Int64(); err != nil {
				t.Errorf("a call with id %s", *frame.ID)
			}
		case frame.Decisions != nil:
			_ = readJSON(frame.Decisions, &api.Decisions{}) // must not panic
		case frame.Hello != nil:
			_ = readJSON(frame.Hello, &api.Hello{}) // must not panic
		default:
			t.Errorf("%q is a frame of no kind", data)
		}
	})
}

// FuzzDecision: whatever an app decides, either all of it is good OpenFlow that
// the crossing's encoding takes, or nothing is done.
func FuzzDecision(f *testing.F) {
	for _, seed := range []string{
		`{"verdict":"drop","operations":[{"add_flow":{"priority":5,"match":{"in_port":"1"},"actions":["output:2"],"cookie":"1"}},{"fence":true}]}`,
		`{"operations":[{"packet_out":{"actions":["flood"]}},{"packet_out":{"dpid":"a","data":"aGk=","in_port":3}}]}`,
		`{"operations":[{"add_group":{"id":1,"type":"select","buckets":[{"weight":1,"watch_port":2,"actions":["output:2"]}]}}]}`,
		`{"operations":[{"delete_flow":{"match":{"eth_type":"0x0800","ipv4_dst":"10.0.0.0/8"}}},{"delete_group":{"id":1}}]}`,
		`{"operations":[{"add_flow":{"actions":["set_field:10.0.0.1->ipv4_dst","experimenter:0x2320:00ff"],"goto_table":3,"metadata":"1/2"}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &api.Decision{}
		if protojson.Unmarshal(data, m) != nil {
			return
		}
		d := &flow.Decision{}
		if _, err := m.Append(tcp(80), d); err != nil {
			if !d.Empty() {
				t.Errorf("%q is refused (%v), but is done in part", data, err)
			}
			return
		}
		if len(d.Ops) != len(m.GetOperations()) {
			t.Errorf("%d operations became %d", len(m.GetOperations()), len(d.Ops))
		}
		wire, err := d.AppendBinary(nil)
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if err := new(flow.Decision).UnmarshalBinary(wire); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if _, err := api.NewDecision(flow.Next, d); err != nil {
			t.Errorf("%q: said back: %v", data, err)
		}
	})
}

// FuzzHello: whatever an app says of itself, it is checked without a panic.
func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"name":"a","kind":"stage","filter":{"eth_type":"0x0800"},"url":"http://127.0.0.1:1"}`))
	o, err := New(Config{Caller: fakeCaller{}, Attach: (&fakeRuntime{}).attach})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := &api.Hello{}
		if protojson.Unmarshal(data, h) != nil {
			return
		}
		if info, err := o.apps.check(t.Context(), h); err == nil && !appName.MatchString(info.Name) {
			t.Errorf("name %q passes", info.Name)
		}
		if u, err := o.checkURL(h.GetUrl()); err == nil && (u.Scheme != "http" || !localsocket.Loopback(u.Hostname())) {
			t.Errorf("url %q passes", h.GetUrl())
		}
	})
}
