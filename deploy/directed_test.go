package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

func TestDirectedCalls(t *testing.T) {
	for _, kind := range []string{"grpc", "ws", "rest", "shm"} {
		t.Run(kind, func(t *testing.T) {
			h := newHalves(t, kind)
			h.startAll()
			g, ctx := h.run("gateway").env, t.Context()
			for sw, owner := range map[string]string{"1": "e", "3": "e", "20": "w", "2f": "w"} {
				r, err := weft.Call(ctx, g, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw})
				if err != nil || len(r.Flows) != 1 || r.Flows[0].Owner != owner {
					t.Errorf("switch %s: %v %v", sw, r, err)
				}
			}
			for sw, want := range map[string]string{"8": `e has no "8"`, "9": `w has no "9"`, "no": `e has no "no"`} {
				if _, err := weft.Call(ctx, g, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw}); api.KindOf(err) != codes.NotFound || err.Error() != want {
					t.Errorf("switch %s: %v, want %s", sw, err, want)
				}
			}
			list, err := weft.Call(ctx, g, api.ListSwitches, &api.ListSwitchesRequest{})
			if text := fmt.Sprint(list); err != nil || strings.Count(text, "dpid") != 4 || strings.Index(text, `"20"`) < strings.Index(text, `"1"`) || strings.Index(text, `"3"`) < strings.Index(text, `"2f"`) {
				t.Errorf("%v %v", list, err)
			}
			limits, err := weft.Call(ctx, g, api.ListLimits, &api.ListLimitsRequest{})
			if err != nil || len(limits.Limits) != 4 || limits.Shed["both"] != 6 || limits.Shed["e"] != 1 || limits.Shed["w"] != 1 {
				t.Errorf("%v %v", limits, err)
			}
			echoes, err := weft.Call(ctx, g, api.EchoSwitches, &api.EchoSwitchesRequest{Dpids: []string{"20", "1", "2f", "3"}, DeadlineUs: 7})
			if err != nil || len(echoes.Echoes) != 4 {
				t.Fatal(echoes, err)
			}
			for i, want := range []string{"w20", "e1", "w2f", "e3"} {
				if e := echoes.Echoes[i]; e.Error != want || e.RttUs != 7 {
					t.Errorf("echo %d: %v, want %s", i, e, want)
				}
			}
			rules, err := weft.Call(ctx, g, api.ListFirewallRules, &api.ListFirewallRulesRequest{})
			if err != nil || len(rules.Rules) != 3 || rules.Total != 2 || rules.Rules[0].Id != "z" || rules.Rules[0].Packets != 10 || rules.Rules[0].Bytes != 100 || rules.Rules[1].Packets != 1 {
				t.Errorf("%v %v", rules, err)
			}
			added, err := weft.Call(ctx, g, api.AddFirewallRules, &api.AddFirewallRulesRequest{})
			if err != nil || len(added.Ids) != 1 || added.Added != 1 || len(added.Failures) != 2 {
				t.Errorf("%v %v", added, err)
			}
			policies, err := weft.Call(ctx, g, api.QosListPolicies, &api.QosListPoliciesRequest{})
			if err != nil || len(policies.Policies) != 2 {
				t.Errorf("%v %v", policies, err)
			}
			qos, err := weft.Call(ctx, g, api.QosGetStatus, &api.QosGetStatusRequest{})
			if err != nil || len(qos.Switches) != 2 || len(qos.Policies) != 2 {
				t.Fatal(qos, err)
			}
			if a, b := qos.Policies[0], qos.Policies[1]; a.State != "failing" || a.Reason != "2f" || len(a.Switches) != 2 || a.Switches[0].Dpid != "1" ||
				b.State != "enforced" || b.Reason != "1" || len(b.Switches) != 1 {
				t.Errorf("%v", qos)
			}
			for sw, process := range map[string]string{"1": "e", "20": "w"} {
				if m, err := weft.Call(ctx, g, api.QosSetQueues, &api.QosSetQueuesRequest{Queues: &api.QosQueues{Dpid: sw}}); err != nil || m.State != process {
					t.Errorf("queues of switch %s: %v %v", sw, m, err)
				}
			}
			status, err := weft.Call(ctx, g, api.GetFirewallStatus, &api.GetFirewallStatusRequest{})
			if err != nil || status.Rules != 2 || status.Allowed != 20 || status.Denied != 2 || status.DefaultAction != "allow" {
				t.Errorf("%v %v", status, err)
			}
		})
	}
}

func TestDirectedDecisions(t *testing.T) {
	h := newHalves(t, "grpc")
	h.startAll()
	g := h.run("gateway").env
	for _, c := range []struct {
		cries                 string
		method                api.Method[flow.Decision, api.ApplyResult]
		program, asked, fails string
	}{
		{"", api.Send, "1:1 3:2", "e sends 1:1 3:2", ""},
		{"", api.Apply, "20:1 fence 2f:2", "w applies 20:1 fence 2f:2", ""}, // one partition: as it is
		{"", api.Send, "20:1 20!2 1:3 3:4 2f:5", "w sends 20:1 20:2; e sends 1:3 3:4; w sends 2f:5", ""},
		{"", api.Apply, "20:1 1:2 fence fence 1:3 20:4", "w applies 20:1; e applies 1:2; e applies 1:3; w applies 20:4", ""},
		{"1", api.Apply, "20:1 1:2 3:3 2f:4 fence 1:5 20:6", "w applies 20:1; e applies 1:2 3:3; w applies 2f:4", "1 1 false; 5 1 true; 6 20 true"},
		{"3", api.Apply, "20:1 1:2 3:3 2f:4", "w applies 20:1; e applies 1:2 3:3; w applies 2f:4", "2 3 false"},
		{"2f", api.Apply, "1:0 fence 2f:1 3:2", "e applies 1:0; w applies 2f:1; e applies 3:2", "2 2f false"},
		{"", api.Apply, "", "", ""},
		{"", api.Apply, "fence", "", ""},
	} {
		h.mu.Lock()
		h.cries = map[string]bool{c.cries: true}
		h.mu.Unlock()
		r, err := weft.Call(t.Context(), g, c.method, program(t, c.program))
		if asked := h.asked(); err != nil || asked != c.asked || failed(r) != c.fails {
			t.Errorf("%s: asked %q, failed %q, %v; want %q, %q", c.program, asked, failed(r), err, c.asked, c.fails)
		}
	}
	// Send does not wait for fences; they hold nevertheless.
	if _, err := weft.Call(t.Context(), g, api.Send, program(t, "1:1 20:2 fence 20:3 1:4")); err != nil {
		t.Error(err)
	}
	var all []string
	h.eventually("what is behind the fence is sent", func() bool {
		if text := h.asked(); text != "" {
			all = append(all, text)
		}
		return strings.Count(strings.Join(all, "; "), "applies") == 4
	})
	if got, want := strings.Join(all, "; "), "e applies 1:1; w applies 20:2; w applies 20:3; e applies 1:4"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// TestDirectedWithoutOneSide has the southbound of one partition die: what is
// for its switches fails and is told, the rest goes on; and all is well when it
// is back.
func TestDirectedWithoutOneSide(t *testing.T) {
	h := newHalves(t, "grpc")
	h.startAll()
	g, ctx := h.run("gateway").env, t.Context()
	h.eventually("the gateway knows both partitions", func() bool {
		list, err := weft.Call(ctx, g, api.ListSwitches, &api.ListSwitchesRequest{})
		return err == nil && len(list.Switches) == 4 && len(list.Incomplete) == 0
	})
	h.asked()
	h.kill(h.process("w"))
	r, err := weft.Call(ctx, g, api.Apply, program(t, "20:1 1:2 2f:3 3:4 fence 1:5"))
	if err != nil || failed(r) != "0 20 true; 2 2f true; 5 1 true" || !strings.Contains(r.Failures[0].Text, "service southbound of partition west cannot be reached") {
		t.Errorf("%v %v", r, err)
	}
	if asked := h.asked(); asked != "e applies 1:2; e applies 3:4" {
		t.Errorf("asked %q", asked)
	}
	list, err := weft.Call(ctx, g, api.ListSwitches, &api.ListSwitchesRequest{})
	if err != nil || len(list.Switches) != 2 || len(list.Incomplete) != 1 || !strings.HasPrefix(list.Incomplete[0], "partition west: ") {
		t.Errorf("%v %v", list, err)
	}
	echoes, err := weft.Call(ctx, g, api.EchoSwitches, &api.EchoSwitchesRequest{Dpids: []string{"20", "1"}, DeadlineUs: 7})
	if err != nil || len(echoes.Echoes) != 2 || !strings.Contains(echoes.Echoes[0].Error, "partition west") || echoes.Echoes[1].Error != "e1" {
		t.Errorf("%v %v", echoes, err)
	}
	if r, err := weft.Call(ctx, g, api.ReadFlows, &api.ReadFlowsRequest{Dpid: "1"}); err != nil || len(r.Flows) != 1 {
		t.Errorf("a switch of the other partition: %v %v", r, err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := weft.Call(short, g, api.ReadFlows, &api.ReadFlowsRequest{Dpid: "20"}); api.KindOf(err) != codes.DeadlineExceeded {
		t.Errorf("a switch of the partition that is away: %v", err)
	}
	waited := make(chan error, 1) // a call for one partition waits for it as ever
	go func() {
		_, err := weft.Call(context.Background(), g, api.ReadFlows, &api.ReadFlowsRequest{Dpid: "20"})
		waited <- err
	}()
	h.start("w")
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if r, err = weft.Call(ctx, g, api.Apply, program(t, "20:1 1:2 fence 20:3")); err != nil || failed(r) != "" {
		t.Errorf("%v %v", r, err)
	}
	if asked := h.asked(); asked != "w applies 20:1; e applies 1:2; w applies 20:3" {
		t.Errorf("asked %q", asked)
	}
}

// TestFactsOfOnePartition has the southbound of one partition start again, and
// that of the other be away when it is looked at what the first has not told
// again: only its own is withdrawn.
func TestFactsOfOnePartition(t *testing.T) {
	h := newHalves(t, "grpc")
	heard := newHeard()
	h.setup["gateway"] = func(p *actor) {
		weft.On(p.env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) {
			heard.note(p, "switch "+e.GetSwitch().GetDpid()+map[bool]string{true: " up", false: " down"}[e.GetSwitch().GetConnected()])
		})
	}
	again := false // set while no southbound runs
	southbound := h.setup["southbound"]
	h.setup["southbound"] = func(p *actor) {
		southbound(p)
		if again && p.process == "e" {
			switchIs(p, "3", true)
		}
	}
	h.withdrawAfter = 300 * time.Millisecond
	h.startAll()
	list := h.runs("southbound", 2)
	switchIs(list[0], "1", true)
	switchIs(list[0], "3", true)
	switchIs(list[1], "20", true)
	h.eventually("all is heard", func() bool { return len(heard.of("g")) == 3 })
	h.kill(h.process("w"))
	h.kill(h.process("e"))
	again = true
	h.start("e")
	h.eventually("what is not there again is withdrawn", func() bool { return strings.Contains(strings.Join(heard.of("g"), ", "), "switch 1 down") })
	time.Sleep(50 * time.Millisecond)
	if got := strings.Join(heard.of("g"), ", "); strings.Contains(got, "20 down") || strings.Contains(got, "3 down") {
		t.Errorf("heard %s", got)
	}
	h.start("w")
	h.eventually("the other's is withdrawn when that is back", func() bool { return strings.Contains(strings.Join(heard.of("g"), ", "), "switch 20 down") })
}

// TestDirections holds the names in the table to the messages.
func TestDirections(t *testing.T) {
	for _, m := range append(api.Methods(), api.Apply, api.Send) {
		name, d := m.MethodName(), api.RulesOf(m.MethodName()).GetRoute()
		if d == nil {
			continue
		}
		req, resp := m.NewMessages()
		has := func(message any, field string) {
			if field == "" {
				return
			}
			p, ok := message.(proto.Message)
			if !ok {
				t.Errorf("%s: %T has no field %s", name, message, field)
				return
			}
			m := p.ProtoReflect().Descriptor()
			for part := range strings.SplitSeq(field, ".") {
				f := m.Fields().ByName(protoreflect.Name(part))
				if f == nil {
					t.Errorf("%s: %T has no field %s", name, message, field)
					return
				}
				m = f.Message()
			}
		}
		has(req, d.Switch)
		has(req, d.List)
		has(resp, d.Answers)
		has(resp, d.Incomplete)
		for _, f := range append(d.Sums, d.Once...) {
			has(resp, f)
		}
	}
}

// TestDecisionsCrossPartitions has stages decide about packets of switches of
// east what is to be done on switches of both: in another process, and, where
// the plan has them there, in the process of the session.
func TestDecisionsCrossPartitions(t *testing.T) {
	for _, c := range []struct{ name, workers string }{
		{"elsewhere", `e: {services: [southbound, firewall], partition: east}, w: {services: [southbound, firewall], partition: west},
			a: {services: [discovery, forwarding]}, g: {services: [gateway]}`},
		{"here", `e: {services: [southbound, firewall, forwarding], partition: east}, w: {services: [southbound, firewall, forwarding], partition: west},
			a: {services: [discovery]}, g: {services: [gateway]}`},
		{"at once", `e: {services: [southbound, firewall, forwarding], partition: east}, w: {services: [southbound, firewall, forwarding], partition: west},
			a: {services: [discovery]}, g: {services: [gateway]}}, pipeline: [firewall, forwarding, discovery`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHalves(t, "grpc")
			h.setup["forwarding"] = func(p *actor) {
				weft.Stage(p.env, func(sw flow.DPID) weft.StageFunc {
					return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
						text := "20:1 20!2 3:3 1:4 1:5 2f:6"
						switch sequence(in.Data) {
						case 1:
							text = "20:1 fence 1:2"
						case 2:
							text = "20:7"
						}
						*d = *program(t, text)
						return flow.Done
					}
				})
			}
			text := `{name: halves, events: grpc, partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}, workers: {` + c.workers + "}}"
			if c.name == "at once" {
				text = `{name: halves, events: grpc, partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}, workers: {` + c.workers + "]}"
			}
			h.apply(text)
			h.startAll()
			east := h.runs("southbound", 2)[0]
			left := make(chan string, 10)
			tell := func(d *flow.Decision) {
				var ops []string
				for _, op := range d.Ops {
					ops = append(ops, fmt.Sprintf("%x:%d", uint64(op.Switch), priority(d, op)))
				}
				h.note("session %s", strings.Join(ops, " "))
				left <- ""
			}
			pipe := weft.OpenPipeline(east.env, 1, func(d *flow.Decision) {
				if d != nil {
					tell(d)
				}
			})
			send := func(n uint64) {
				data := make([]byte, 60)
				data[21] = byte(n)
				in := &flow.PacketIn{Switch: 1, Time: time.Now().UnixNano(), BufferID: flow.BufferNone, TotalLen: 60, Data: data}
				var d flow.Decision
				if v := pipe.Packet(in, &d); v != flow.Away {
					tell(&d)
				}
				pipe.Flush()
				<-left
			}
			// What is for a partition that is not there fails, as for a switch that is away.
			h.eventually("east reaches west", func() bool {
				send(2)
				return strings.Contains(h.asked(), "w sends 20:7")
			})
			for n := range uint64(2) {
				send(n)
				var all []string
				want := []string{"e judges 1", "w sends 20:1 20:2 2f:6", "e sends 3:3", "session 1:4 1:5"}
				if n == 1 {
					want = []string{"e applies 1:2"}
				}
				h.eventually(fmt.Sprintf("packet %d is dealt with", n), func() bool {
					if text := h.asked(); text != "" {
						all = append(all, text)
					}
					got := merged(all)
					return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) })
				})
				got := strings.Join(all, "; ")
				if n == 0 && !strings.HasPrefix(got, "e judges 1; ") {
					t.Errorf("got %q", got)
				}
				if n == 1 {
					if !strings.HasPrefix(got, "e judges 1; ") || !strings.Contains(got, "w applies 20:1") || strings.Index(got, "w applies 20:1") > strings.Index(got, "e applies 1:2") {
						t.Errorf("fenced: %q", got)
					}
				}
			}
			pipe.Close()
			west := h.runs("southbound", 2)[1]
			pipe = weft.OpenPipeline(west.env, 0x20, func(*flow.Decision) {})
			data := make([]byte, 60)
			pipe.Packet(&flow.PacketIn{Switch: 0x20, Time: time.Now().UnixNano(), BufferID: flow.BufferNone, TotalLen: 60, Data: data}, &flow.Decision{})
			pipe.Flush()
			h.eventually("west's firewall sees west's packet", func() bool {
				text := h.asked()
				if strings.Contains(text, "e judges") {
					t.Errorf("east's firewall sees west's packet: %s", text)
				}
				return strings.Contains(text, "w judges 20")
			})
		})
	}
}

// merged joins what each process does by the same verb, in its order: how many messages
// carry it, and when others act, is open.
func merged(notes []string) (list []string) {
	by := map[string]string{}
	for _, n := range strings.Split(strings.Join(notes, "; "), "; ") {
		words := strings.SplitN(n, " ", 3)
		what := strings.Join(words[:len(words)-1], " ")
		by[what] += " " + words[len(words)-1]
	}
	for what, did := range by {
		list = append(list, what+did)
	}
	return list
}
