package southbound

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// all is a request that narrows nothing.
func all(sw flow.DPID, kind api.Multipart) *api.ReadMultipartRequest {
	return &api.ReadMultipartRequest{
		Dpid: sw.String(), Kind: kind, Table: uint32(flow.TableAll), OutPort: uint32(flow.PortAny), OutGroup: flow.GroupAny,
		Port: uint32(flow.PortAny), Queue: openflow.QueueAll, Group: flow.GroupAll, Meter: flow.MeterAll,
	}
}

// TestReadMultipart asks a switch for everything that it can be asked for.
func TestReadMultipart(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 7, Ports: 2})
		d := &flow.Decision{}
		d.Group(7, flow.GroupMod{Group: flow.Group{ID: 3, Buckets: []flow.Bucket{{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.Output(2)}}}}})
		d.Meter(7, flow.MeterMod{Meter: flow.Meter{ID: 4, Flags: openflow.MeterFlagKbps, Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: 100}}}})
		for i, cookie := range []flow.Cookie{0x11, 0x22} {
			m := d.AddFlow(7)
			m.Entry.Priority, m.Entry.Cookie, m.Entry.Match = uint16(i+1), cookie, flow.Match{}.WithInPort(flow.Port(i+1))
			m.Entry.Apply = d.Actions(flow.Output(2))
		}
		if r := w.apply(d); len(r.Failures) > 0 {
			t.Fatal(r.Failures)
		}
		read := func(req *api.ReadMultipartRequest) *api.ReadMultipartResponse {
			t.Helper()
			resp, err := wefttest.Call(w.h, api.ReadMultipart, req)
			if err != nil {
				t.Fatalf("%v: %v", req.Kind, err)
			}
			return resp
		}
		for kind, has := range map[api.Multipart]func(*api.ReadMultipartResponse) bool{
			api.Multipart_MULTIPART_DESC:      func(r *api.ReadMultipartResponse) bool { return r.Desc != nil },
			api.Multipart_MULTIPART_FLOW:      func(r *api.ReadMultipartResponse) bool { return len(r.Flows) == 2 && r.Flows[0].Length >= 56 },
			api.Multipart_MULTIPART_AGGREGATE: func(r *api.ReadMultipartResponse) bool { return r.Aggregate.GetFlows() == 2 },
			api.Multipart_MULTIPART_TABLE:     func(r *api.ReadMultipartResponse) bool { return len(r.Tables) > 0 && r.Tables[0].Active == 2 },
			api.Multipart_MULTIPART_TABLE_FEATURES: func(r *api.ReadMultipartResponse) bool {
				return len(r.TableFeatures) > 0 && len(r.TableFeatures[0].Properties) > 0
			},
			api.Multipart_MULTIPART_PORT_STATS:  func(r *api.ReadMultipartResponse) bool { return len(r.Ports) >= 2 },
			api.Multipart_MULTIPART_PORT_DESC:   func(r *api.ReadMultipartResponse) bool { return len(r.PortDescs) >= 2 && r.PortDescs[0].HwAddr != "" },
			api.Multipart_MULTIPART_GROUP_STATS: func(r *api.ReadMultipartResponse) bool { return len(r.Groups) == 1 && r.Groups[0].Group == 3 },
			api.Multipart_MULTIPART_GROUP_DESC: func(r *api.ReadMultipartResponse) bool {
				return len(r.GroupDescs) == 1 && len(r.GroupDescs[0].Buckets) == 1
			},
			api.Multipart_MULTIPART_GROUP_FEATURES: func(r *api.ReadMultipartResponse) bool { return len(r.GroupFeatures.GetMaxGroups()) == 4 },
			api.Multipart_MULTIPART_METER_STATS:    func(r *api.ReadMultipartResponse) bool { return len(r.Meters) == 1 && r.Meters[0].Meter == 4 },
			api.Multipart_MULTIPART_METER_CONFIG: func(r *api.ReadMultipartResponse) bool {
				return len(r.MeterConfigs) == 1 && r.MeterConfigs[0].Bands[0].Rate == 100
			},
			api.Multipart_MULTIPART_METER_FEATURES: func(r *api.ReadMultipartResponse) bool { return r.MeterFeatures.GetMaxMeter() > 0 },
			api.Multipart_MULTIPART_ROLE:           func(r *api.ReadMultipartResponse) bool { return r.Role.GetRole() == uint32(openflow.RoleMaster) },
		} {
			if r := read(all(7, kind)); !has(r) {
				t.Errorf("%v: %v", kind, r)
			}
		}
		narrow := all(7, api.Multipart_MULTIPART_FLOW)
		narrow.Cookie, narrow.CookieMask, narrow.Match = 0x20, 0xf0, map[string]string{"in_port": "2"}
		if r := read(narrow); len(r.Flows) != 1 || r.Flows[0].Cookie != 0x22 {
			t.Errorf("of cookie 0x20/0xf0: %v", r.Flows)
		}
	})
}

// TestReadMultipartWrong: requests that make no sense, or are for no switch.
func TestReadMultipartWrong(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 7, Ports: 2})
		for want, change := range map[codes.Code]func(*api.ReadMultipartRequest){
			codes.NotFound:        func(r *api.ReadMultipartRequest) { r.Dpid = flow.DPID(8).String() },
			codes.InvalidArgument: func(r *api.ReadMultipartRequest) { r.Kind = api.Multipart_MULTIPART_UNSPECIFIED },
		} {
			req := all(7, api.Multipart_MULTIPART_FLOW)
			change(req)
			if _, err := wefttest.Call(w.h, api.ReadMultipart, req); api.KindOf(err) != want {
				t.Errorf("%v: %v, want %v", req, err, want)
			}
		}
		for _, change := range []func(*api.ReadMultipartRequest){
			func(r *api.ReadMultipartRequest) { r.Dpid = "x" },
			func(r *api.ReadMultipartRequest) { r.Kind = 99 },
			func(r *api.ReadMultipartRequest) { r.Table = 256 },
			func(r *api.ReadMultipartRequest) { r.Match = map[string]string{"tcp_dst": "80"} },
		} {
			req := all(7, api.Multipart_MULTIPART_FLOW)
			change(req)
			if _, err := wefttest.Call(w.h, api.ReadMultipart, req); api.KindOf(err) != codes.InvalidArgument {
				t.Errorf("%v: %v", req, err)
			}
		}
		w.works(7)
	})
}

// TestModifyPort: a port that is there is changed or the refusal is told; one
// that is not there is not found.
func TestModifyPort(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 7, Ports: 2})
		if _, err := wefttest.Call(w.h, api.ModifyPort, &api.ModifyPortRequest{Dpid: "7", Port: 99}); api.KindOf(err) != codes.NotFound {
			t.Errorf("port 99: %v", err)
		}
		if _, err := wefttest.Call(w.h, api.ModifyPort, &api.ModifyPortRequest{Dpid: "7", Port: 1, HwAddr: proto.String("x")}); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("address x: %v", err)
		}
		r, err := wefttest.Call(w.h, api.ModifyPort, &api.ModifyPortRequest{Dpid: "7", Port: 1, HwAddr: proto.String("00:00:00:00:00:99")})
		if err != nil || len(r.Failures) != 1 {
			t.Errorf("another port's address: %v, %v", r, err)
		}
		r, err = wefttest.Call(w.h, api.SendExperimenter, &api.SendExperimenterRequest{Dpid: "7", Experimenter: 0x99, Data: []byte("data")})
		if err != nil || len(r.Failures) != 1 {
			t.Errorf("an experimenter that the switch does not know: %v, %v", r, err)
		}
		w.works(7)
	})
}

// TestMalformedAnswers: answers that make no sense cost the connection that
// they come by, and the one who has asked hears of it.
func TestMalformedAnswers(t *testing.T) {
	ask := func(kind api.Multipart) func(*wefttest.Harness) error {
		return func(h *wefttest.Harness) error {
			_, err := wefttest.Call(h, api.ReadMultipart, all(9, kind))
			return err
		}
	}
	var list []replying
	for kind, body := range map[api.Multipart]string{
		api.Multipart_MULTIPART_DESC:           "00",
		api.Multipart_MULTIPART_AGGREGATE:      "00000000 00000000",
		api.Multipart_MULTIPART_TABLE:          "00000000",
		api.Multipart_MULTIPART_TABLE_FEATURES: "0040 0000",
		api.Multipart_MULTIPART_PORT_STATS:     "00000001",
		api.Multipart_MULTIPART_PORT_DESC:      "00000001",
		api.Multipart_MULTIPART_QUEUE_STATS:    "00000001",
		api.Multipart_MULTIPART_GROUP_STATS:    "0000 0000 00000001",
		api.Multipart_MULTIPART_GROUP_DESC:     "0000 0000 00000001",
		api.Multipart_MULTIPART_GROUP_FEATURES: "00000001",
		api.Multipart_MULTIPART_METER_STATS:    "00000001 0000 0000",
		api.Multipart_MULTIPART_METER_CONFIG:   "0000 0001 00000001",
		api.Multipart_MULTIPART_METER_FEATURES: "00000001",
	} {
		list = append(list, replying{kind.String(), ask(kind), body})
	}
	malformedReplies(t, list...)

	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		for _, x := range []struct {
			kind    api.Multipart
			request openflow.Type
			answer  string // behind the transaction id
			typ     openflow.Type
		}{
			{api.Multipart_MULTIPART_QUEUE_CONFIG, openflow.TypeQueueGetConfigRequest, "00000001 00000000 00000001 00000001 0000 000000000000", openflow.TypeQueueGetConfigReply},
			{api.Multipart_MULTIPART_QUEUE_CONFIG, openflow.TypeQueueGetConfigRequest, "00000001", openflow.TypeQueueGetConfigReply},
			{api.Multipart_MULTIPART_ROLE, openflow.TypeRoleRequest, "00000002", openflow.TypeRoleReply},
		} {
			c := w.joined(9)
			asked := make(chan error, 1)
			go func() { asked <- ask(x.kind)(w.h) }()
			request := c.want(x.request)
			body := octets(t, x.answer)
			msg := []byte{4, byte(x.typ), 0, byte(openflow.HeaderLen + len(body)), 0, 0, 0, 0}
			copy(msg[4:], request[4:8])
			c.send(append(msg, body...), nil)
			if err := <-asked; err == nil {
				t.Errorf("%v: the answer %s is taken", x.kind, x.answer)
			}
			w.down(9)
			w.works(1)
		}
	})
}
