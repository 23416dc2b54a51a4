package apps

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
)

func hello(name, kind string) *api.Hello { return &api.Hello{Name: name, Kind: kind} }

// TestStage: a stage sees the packets and what is known of them, in order, and
// what it decides arrives.
func TestStage(t *testing.T) {
	overAll(t, func(t *testing.T, attach attacher) {
		w := serve(t, nil)
		var seen atomic.Pointer[api.Packets]
		c, err := attach(t, w, hello("blocker", "stage"), func(p *api.Packets) *api.Decisions {
			seen.Store(p)
			d := &api.Decisions{Id: p.GetId()}
			for _, in := range p.GetPackets() {
				one := &api.Decision{}
				switch in.GetFields()["tcp_dst"] {
				case "23":
					one.Verdict = "drop"
					one.Operations = []*api.Operation{
						{Operation: &api.Operation_AddFlow{AddFlow: &api.FlowEntry{Priority: 20000, Match: map[string]string{"eth_type": "0x800", "ip_proto": "6", "tcp_dst": "23"}, IdleTimeout: 30}}},
					}
				case "80":
					one.Verdict = "done"
					one.Operations = []*api.Operation{
						{Operation: &api.Operation_Fence{Fence: true}},
						{Operation: &api.Operation_PacketOut{PacketOut: &api.PacketOut{Actions: []string{"output:2"}}}},
						{Operation: &api.Operation_PacketOut{PacketOut: &api.PacketOut{Dpid: "a", Actions: []string{"flood"}, Data: []byte("hi")}}},
					}
				}
				d.Decisions = append(d.Decisions, one)
			}
			return d
		})
		if err != nil {
			t.Fatal(err)
		}
		if c.welcome.GetName() != "blocker" || c.welcome.GetTimeoutMs() != 10_000 || c.welcome.GetMaxBatch() != 256 {
			t.Errorf("welcome is %v", c.welcome)
		}
		info := w.runtime.wait(t, "blocker")
		if info.Kind != Stage || info.App.Name() != "blocker" || info.App.Kind() != Stage || info.Peer == "" {
			t.Errorf("the runtime is told %+v", info)
		}
		list := batch(23, 80, 443)
		list[1].Decision.Fence() // of a stage before
		if err := info.App.Packets(context.Background(), list); err != nil {
			t.Fatal(err)
		}
		if list[0].Verdict != flow.Drop || list[1].Verdict != flow.Done || list[2].Verdict != flow.Next {
			t.Errorf("verdicts are %d, %d, %d", list[0].Verdict, list[1].Verdict, list[2].Verdict)
		}
		d := list[0].Decision
		if len(d.Flows) != 1 || d.Ops[0].Switch != 7 || d.Flows[0].Entry.Priority != 20000 || d.Flows[0].Entry.Match.Key.TPDst != 23 || d.Flows[0].BufferID != flow.BufferNone {
			t.Errorf("the flow is %+v", d)
		}
		d = list[1].Decision
		if len(d.Ops) != 4 || d.Ops[0].Kind != flow.OpFence || d.Ops[1].Kind != flow.OpFence || len(d.Outs) != 2 ||
			string(d.Outs[0].Data) != string(list[1].In.Data) || d.Outs[0].InPort != 3 || d.Ops[2].Switch != 7 ||
			d.Ops[3].Switch != 10 || string(d.Outs[1].Data) != "hi" || d.Outs[1].InPort != flow.PortController {
			t.Errorf("the packet-outs are %+v", d)
		}
		if !list[2].Decision.Empty() {
			t.Errorf("nothing was decided on the third, but it has %v", list[2].Decision.Ops)
		}
		p := seen.Load().GetPackets()[1]
		if len(seen.Load().GetPackets()) != 3 || p.GetDpid() != "0000000000000007" || p.GetInPort() != 3 || p.GetRole() != "edge" ||
			p.GetSrc().GetPort() != 3 || p.GetDst() != nil || p.GetReason() != "no_match" || p.GetFields()["ipv4_src"] != "10.0.0.1" ||
			p.GetFields()["in_port"] != "3" || p.GetTime() != "2001-09-09T01:46:40Z" || len(p.GetData()) != 54 {
			t.Errorf("the app was sent %v", p)
		}
		if s := w.Apps(); len(s) != 1 || s[0].GetPackets() != 3 || s[0].GetAnswered() != 3 {
			t.Errorf("of the app is told %v", s)
		}
		c.leave()
		w.runtime.leaves(t, "blocker")
		if err := info.App.Packets(context.Background(), batch(1)); api.KindOf(err) != codes.Unavailable {
			t.Errorf("when it is gone: %v", err)
		}
		testwait.Until(t, "its name is free", func() bool {
			c, err := attach(t, w, hello("blocker", "stage"), each(&api.Decision{}))
			return err == nil && c.welcome.GetName() == "blocker"
		})
	})
}

// TestObserver: an observer is sent everything that it keeps up with, and
// nobody waits for it.
func TestObserver(t *testing.T) {
	overAll(t, func(t *testing.T, attach attacher) {
		w := serve(t, func(c *Config) { c.Limits.Queue = 500; c.Limits.Batch = 20 })
		var got, numbered atomic.Int64
		slow := make(chan struct{})
		_, err := attach(t, w, hello("watcher", "observer"), func(p *api.Packets) *api.Decisions {
			<-slow
			got.Add(int64(len(p.GetPackets())))
			numbered.Add(int64(p.GetId()))
			return &api.Decisions{}
		})
		if err != nil {
			t.Fatal(err)
		}
		app := w.runtime.wait(t, "watcher").App
		list := batch(1, 2, 3, 4)
		for range 5000 { // would wait for ever if the observer held up the pipeline
			if err := app.Packets(context.Background(), list); err != nil {
				t.Fatal(err)
			}
		}
		untouched(t, list)
		close(slow)
		testwait.Until(t, "sent + dropped = 20000", func() bool {
			s := w.Apps()
			return len(s) == 1 && s[0].GetPackets()+s[0].GetDropped() == 20000 && uint64(got.Load()) == s[0].GetPackets()
		})
		if s := w.Apps()[0]; s.GetDropped() == 0 || got.Load() < 500 || numbered.Load() != 0 {
			t.Errorf("%d sent, %d dropped, ids %d; want at least the 500 of the queue, some dropped, no ids", got.Load(), s.GetDropped(), numbered.Load())
		}
	})
}

// TestFilter: an app is only asked of what it wants.
func TestFilter(t *testing.T) {
	overAll(t, func(t *testing.T, attach attacher) {
		w := serve(t, nil)
		h := hello("web", "stage")
		h.Filter = map[string]string{"eth_type": "0x0800", "ip_proto": "6", "tcp_dst": "80"}
		if _, err := attach(t, w, h, each(&api.Decision{Verdict: "drop"})); err != nil {
			t.Fatal(err)
		}
		list := batch(22, 80, 443, 80)
		if err := w.runtime.wait(t, "web").App.Packets(context.Background(), list); err != nil {
			t.Fatal(err)
		}
		for i, want := range []flow.Verdict{flow.Next, flow.Drop, flow.Next, flow.Drop} {
			if list[i].Verdict != want {
				t.Errorf("packet %d has verdict %d, want %d", i, list[i].Verdict, want)
			}
		}
		if s := w.Apps()[0]; s.GetSkipped() != 2 || s.GetPackets() != 2 {
			t.Errorf("told %v", s)
		}
	})
}

// TestManyAtOnce: batches of several switches are under way at once, and each
// gets its own answer.
func TestManyAtOnce(t *testing.T) {
	overAll(t, func(t *testing.T, attach attacher) {
		w := serve(t, func(c *Config) { c.Limits.Batch = 3 })
		_, err := attach(t, w, hello("even", "stage"), func(p *api.Packets) *api.Decisions {
			d := &api.Decisions{Id: p.GetId()}
			for _, in := range p.GetPackets() {
				verdict := "next"
				if in.GetFields()["tcp_dst"] == "2" {
					verdict = "drop"
				}
				d.Decisions = append(d.Decisions, &api.Decision{Verdict: verdict})
			}
			return d
		})
		if err != nil {
			t.Fatal(err)
		}
		app := w.runtime.wait(t, "even").App
		errs := make(chan error, 16)
		for range cap(errs) {
			go func() {
				for range 20 {
					list := batch(1, 2, 1, 2, 1, 2, 1)
					if err := app.Packets(context.Background(), list); err != nil {
						errs <- err
						return
					}
					for i, p := range list {
						if p.Verdict != [...]flow.Verdict{flow.Next, flow.Drop}[i&1] {
							errs <- errors.New("an answer to another packet")
							return
						}
					}
				}
				errs <- nil
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSilent: an app that does not answer costs its timeout, thrice.
func TestSilent(t *testing.T) {
	overAll(t, func(t *testing.T, attach attacher) {
		w := serve(t, func(c *Config) { c.Limits.Timeout = 50 * time.Millisecond })
		if _, err := attach(t, w, hello("mute", "stage"), func(*api.Packets) *api.Decisions { return nil }); err != nil {
			t.Fatal(err)
		}
		app := w.runtime.wait(t, "mute").App
		for range maxTimeouts {
			list := batch(1, 2)
			err := app.Packets(context.Background(), list)
			if api.KindOf(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "app mute") || !strings.Contains(err.Error(), "within 50ms") {
				t.Error(err)
			}
			untouched(t, list)
		}
		w.runtime.leaves(t, "mute")
		// Whoever gives up before is not the app's fault.
		if _, err := attach(t, w, hello("mute2", "stage"), func(*api.Packets) *api.Decisions { return nil }); err != nil {
			t.Fatal(err)
		}
		app = w.runtime.wait(t, "mute2").App
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := app.Packets(ctx, batch(1)); api.KindOf(err) != codes.Canceled {
			t.Errorf("cancelled: %v", err)
		}
		if s := w.Apps(); len(s) != 1 || s[0].GetTimeouts() != 0 {
			t.Errorf("told %v", s)
		}
	})
}

// TestOneOfAName: a second app of a name is refused, and the first stays.
func TestOneOfAName(t *testing.T) {
	overAll(t, func(t *testing.T, attach attacher) {
		w := serve(t, nil)
		if _, err := attach(t, w, hello("one", "stage"), each(&api.Decision{Verdict: "drop"})); err != nil {
			t.Fatal(err)
		}
		for name, other := range transports() {
			if _, err := other(t, w, hello("one", "stage"), each(&api.Decision{})); err == nil || !strings.Contains(err.Error(), "already attached") {
				t.Errorf("a second over %s: %v", name, err)
			}
		}
		list := batch(1)
		if err := w.runtime.wait(t, "one").App.Packets(context.Background(), list); err != nil || list[0].Verdict != flow.Drop {
			t.Errorf("the first: verdict %d, %v", list[0].Verdict, err)
		}
	})
}

// TestRefused: what apps may get wrong at the start is said to them.
func TestRefused(t *testing.T) {
	overAll(t, func(t *testing.T, attach attacher) {
		w := serve(t, func(c *Config) { c.Limits.Apps = 1 })
		for _, x := range []struct {
			hello *api.Hello
			want  string
		}{
			{hello("", "stage"), "lower-case"},
			{hello("Blocker", "stage"), "lower-case"},
			{hello(strings.Repeat("a", 41), "stage"), "at most 40"},
			{hello("a", ""), "want stage or observer"},
			{hello("a", "spy"), "want stage or observer"},
			{&api.Hello{Name: "a", Kind: "stage", Filter: map[string]string{"tcp_dst": "80"}}, "ip_proto=6"},
			{&api.Hello{Name: "a", Kind: "stage", Filter: map[string]string{"port": "80"}}, "want one of in_port"},
		} {
			if _, err := attach(t, w, x.hello, each(&api.Decision{})); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("hello %v: %v; want %q", x.hello, err, x.want)
			}
		}
		w.runtime.refuse = errors.New("this worker runs no pipeline")
		if _, err := attach(t, w, hello("a", "stage"), each(&api.Decision{})); err == nil || !strings.Contains(err.Error(), "no pipeline") {
			t.Errorf("refused by the runtime: %v", err)
		}
		w.runtime.refuse = nil
		if _, err := attach(t, w, hello("a", "stage"), each(&api.Decision{})); err != nil {
			t.Errorf("after all that: %v", err)
		}
		if _, err := attach(t, w, hello("b", "stage"), each(&api.Decision{})); err == nil || !strings.Contains(err.Error(), "no more are allowed") {
			t.Errorf("one too many: %v", err)
		}
	})
}

// TestClose: apps are told that the worker stops.
func TestClose(t *testing.T) {
	for _, name := range []string{"grpc", "ws"} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			c, err := transports()[name](t, w, hello("a", "stage"), each(&api.Decision{}))
			if err != nil {
				t.Fatal(err)
			}
			w.runtime.wait(t, "a")
			w.end(errStops)
			select {
			case err := <-c.ended:
				if !strings.Contains(err.Error(), errStops.Error()) {
					t.Errorf("told %v", err)
				}
			case <-time.After(testwait.Limit):
				t.Error("not told")
			}
			w.runtime.leaves(t, "a")
		})
	}
}
