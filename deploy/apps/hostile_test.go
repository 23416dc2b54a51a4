package apps

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
)

func op(o *api.Operation) *api.Decision { return &api.Decision{Operations: []*api.Operation{o}} }

func addFlow(f *api.FlowEntry) *api.Decision {
	return op(&api.Operation{Operation: &api.Operation_AddFlow{AddFlow: f}})
}

func packetOut(o *api.PacketOut) *api.Decision {
	return op(&api.Operation{Operation: &api.Operation_PacketOut{PacketOut: o}})
}

func addGroup(g *api.Group) *api.Decision {
	return op(&api.Operation{Operation: &api.Operation_AddGroup{AddGroup: g}})
}

// TestMalformed: an answer that is wrong changes nothing, is told of, and costs
// the app its place. The wrong decision comes last, behind one that is right.
func TestMalformed(t *testing.T) {
	good := packetOut(&api.PacketOut{Actions: []string{"output:1"}})
	good.Verdict = "drop"
	for _, x := range []struct {
		name string
		d    *api.Decision
		want string
	}{
		{"verdict", &api.Decision{Verdict: "maybe"}, `want one of ["next" "done" "drop"]`},
		{"empty operation", op(&api.Operation{}), "want one of add_flow"},
		{"dpid", addFlow(&api.FlowEntry{Dpid: "switch one"}), `datapath id "switch one"`},
		{"action", addFlow(&api.FlowEntry{Actions: []string{"output:everywhere"}}), `action "output:everywhere"`},
		{"match", addFlow(&api.FlowEntry{Match: map[string]string{"tcp_dst": "80"}}), "ip_proto=6"},
		{"priority", addFlow(&api.FlowEntry{Priority: 70000}), "priority 70000"},
		{"our cookie", addFlow(&api.FlowEntry{Cookie: "5745010000000000"}), "those of Weft's own"},
		{"table", addFlow(&api.FlowEntry{Actions: []string{"table"}}), "packet-outs only"},
		{"port", packetOut(&api.PacketOut{InPort: 0xfffffffb}), "in_port flood"},
		{"data", packetOut(&api.PacketOut{Data: make([]byte, 65536)}), "want at most 65535"},
		{"group", addGroup(&api.Group{Id: 1, Type: "any"}), `want one of ["all"`},
		{"group id", addGroup(&api.Group{Type: "all"}), "id 0"},
		{"bucket", addGroup(&api.Group{Id: 1, Type: "all", Buckets: []*api.Bucket{{Actions: []string{"x"}}}}), "bucket 0"},
		{"many actions", packetOut(&api.PacketOut{Actions: make([]string, 1000)}), "more than 64 actions"},
		{"many operations", &api.Decision{Operations: make([]*api.Operation, 1000)}, "want at most 256"},
		{"fence", op(&api.Operation{Operation: &api.Operation_Fence{}}), "want true"},
	} {
		t.Run(x.name, func(t *testing.T) {
			overAll(t, func(t *testing.T, attach attacher) {
				if x.name == "many operations" {
					for i := range x.d.Operations {
						x.d.Operations[i] = &api.Operation{}
					}
				}
				malformed(t, attach, func(p *api.Packets) *api.Decisions {
					return &api.Decisions{Id: p.GetId(), Decisions: []*api.Decision{good, x.d}}
				}, x.want)
			})
		})
	}
}

// malformed has an app answer two packets wrongly.
func malformed(t *testing.T, attach attacher, d decide, want string) {
	t.Helper()
	w := serve(t, nil)
	c, err := attach(t, w, hello("wrong", "stage"), d)
	if err != nil {
		t.Fatal(err)
	}
	list := batch(1, 2)
	err = w.runtime.wait(t, "wrong").App.Packets(context.Background(), list)
	if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "app wrong") {
		t.Errorf("the runtime is told %v; want %q", err, want)
	}
	untouched(t, list)
	w.runtime.leaves(t, "wrong")
	if c.welcome.GetLeaseSeconds() == 0 {
		select {
		case err := <-c.ended:
			if !strings.Contains(err.Error(), strings.ReplaceAll(want, `"`, `\"`)) && !strings.Contains(err.Error(), want) {
				t.Errorf("the app is told %v; want %q", err, want)
			}
		case <-time.After(testwait.Limit):
			t.Error("the connection is not ended")
		}
	}
	// What it was is said to the next of the name.
	testwait.Until(t, "it comes again", func() bool {
		c, err = attach(t, w, hello("wrong", "stage"), each(&api.Decision{}))
		return err == nil
	})
	if !strings.Contains(c.welcome.GetLastError(), want) {
		t.Errorf("then it is told %q; want %q", c.welcome.GetLastError(), want)
	}
}

// TestWrongBatch: answers to something else.
func TestWrongBatch(t *testing.T) {
	overAll(t, func(t *testing.T, attach attacher) {
		t.Run("too few", func(t *testing.T) {
			malformed(t, attach, func(p *api.Packets) *api.Decisions {
				return &api.Decisions{Id: p.GetId(), Decisions: []*api.Decision{{}}}
			}, "1 decisions on 2 packets")
		})
		t.Run("too many", func(t *testing.T) {
			malformed(t, attach, func(p *api.Packets) *api.Decisions {
				return &api.Decisions{Id: p.GetId(), Decisions: make3()}
			}, "3 decisions on 2 packets")
		})
	})
	for _, name := range []string{"grpc", "ws"} {
		t.Run(name+"/unknown id", func(t *testing.T) {
			w := serve(t, nil)
			c, err := transports()[name](t, w, hello("wrong", "stage"), func(p *api.Packets) *api.Decisions {
				return &api.Decisions{Id: p.GetId() + 1, Decisions: make3()}
			})
			if err != nil {
				t.Fatal(err)
			}
			list := batch(1, 2, 3)
			if err := w.runtime.wait(t, "wrong").App.Packets(context.Background(), list); err == nil || !strings.Contains(err.Error(), "decisions with id 2") {
				t.Errorf("the runtime is told %v", err)
			}
			untouched(t, list)
			if err := <-c.ended; !strings.Contains(err.Error(), "no such packets were sent") {
				t.Errorf("the app is told %v", err)
			}
		})
	}
}

func make3() []*api.Decision { return []*api.Decision{{}, {}, {}} }

// TestLate: an answer that comes too late, or twice, is nobody's and harms nobody.
func TestLate(t *testing.T) {
	for _, name := range []string{"grpc", "ws"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, func(c *Config) { c.Limits.Timeout = 700 * time.Millisecond })
			var held *api.Decisions
			_, err := transports()[name](t, w, hello("late", "stage"), func(p *api.Packets) *api.Decisions {
				if held == nil {
					held = each(&api.Decision{Verdict: "drop"})(p)
					return nil
				}
				if p.GetId() == 2 {
					return held // of the first, instead
				}
				return each(&api.Decision{Verdict: "done"})(p)
			})
			if err != nil {
				t.Fatal(err)
			}
			app := w.runtime.wait(t, "late").App
			for range 2 {
				list := batch(1)
				if err := app.Packets(context.Background(), list); api.KindOf(err) != codes.DeadlineExceeded {
					t.Errorf("told %v", err)
				}
				untouched(t, list)
			}
			list := batch(1)
			if err := app.Packets(context.Background(), list); err != nil || list[0].Verdict != flow.Done {
				t.Errorf("the third: verdict %d, %v", list[0].Verdict, err)
			}
		})
	}
}

// TestFrames: what is no frame ends the WebSocket, which is told why.
func TestFrames(t *testing.T) {
	w := serve(t, nil)
	for _, x := range []struct{ frame, want string }{
		{``, "EOF"},
		{`{`, "unexpected EOF"},
		{`[]`, "cannot unmarshal array"},
		{`{}`, "want one of"},
		{`{"hello":{},"call":"x","id":1}`, "want one of"},
		{`{"hi":{}}`, `unknown field`},
		{`{"hello":{"name":"a","kind":"stage","colour":"red"}}`, "Hello has name, kind, filter, url"},
		{`{"hello":null}`, "JSON of Hello"},
		{`{"hello":{"name":"a","kind":"stage","url":"http://127.0.0.1:1"}}`, "url is for REST"},
		{`{"decisions":{"id":5}}`, "no such packets were sent"},
		{`{"decisions":{"id":0}}`, "no such packets were sent"},
		{`{"decisions":{"id":-1}}`, "JSON of Decisions"},
		{`{"decisions":[]}`, "JSON of Decisions"},
		{`{"call":"hosts.FindHost"}`, "a call without an id"},
		{`{"id":1.5,"call":"hosts.FindHost"}`, "whole number"},
		{`{"id":1e99,"call":"hosts.FindHost"}`, "whole number"},
		{`{"id":"x","call":"hosts.FindHost"}`, "invalid"},
		{`{"id":1,"hello":{}}`, "are for calls"},
		{`{"id":1,"call":"hosts.FindHost"}{}`, "more than one value"},
		{strings.Repeat(`{"hello":`, 20000), "exceeded max depth"},
	} {
		conn, err := openWS(t, w)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
		if err := conn.Write(ctx, websocket.MessageText, []byte(x.frame)); err != nil {
			t.Fatal(err)
		}
		_, text, err := conn.Read(ctx)
		if err != nil || !strings.HasPrefix(string(text), `{"error":{"code":3,`) || !strings.Contains(string(text), x.want) {
			t.Errorf("%.80q: told %q, %v; want %q", x.frame, text, err, x.want)
		}
		if _, _, err = conn.Read(ctx); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("%.80q: then %v; want the connection closed", x.frame, err)
		}
		cancel()
	}
	conn, err := openWS(t, w)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(context.Background(), websocket.MessageText, make([]byte, maxMessage+1)); err == nil {
		_, _, err = conn.Read(context.Background())
		if websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
			t.Errorf("a frame that is too large: %v", err)
		}
	}
}

// TestManyConnections: no more WebSockets and streams than are allowed, and
// those that say nothing over gRPC do not stay.
func TestManyConnections(t *testing.T) {
	w := serve(t, func(c *Config) { c.Limits.Connections = 2 })
	for range 2 {
		if _, err := openWS(t, w); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openWS(t, w); err == nil || !strings.Contains(err.Error(), "429") {
		t.Errorf("a third WebSocket: %v", err)
	}
	if _, err := attachGRPC(t, w, hello("a", "stage"), each(nil)); err == nil || !strings.Contains(err.Error(), "no more are allowed") {
		t.Errorf("a stream: %v", err)
	}
}

// TestManyAttachments: apps that come and go too fast are slowed down.
func TestManyAttachments(t *testing.T) {
	w := serve(t, func(c *Config) { c.Limits.AttachRate = 1 })
	refused := 0
	for i := range 10 {
		if _, err := attachWS(t, w, hello(fmt.Sprintf("a%d", i), "stage"), each(nil)); err != nil {
			if !strings.Contains(err.Error(), "attach at once") {
				t.Fatal(err)
			}
			refused++
		}
	}
	if refused < 6 {
		t.Errorf("%d of 10 refused; want most", refused)
	}
}

// TestUnread: an app that does not read what it is sent does not keep anybody.
func TestUnread(t *testing.T) {
	w := serve(t, func(c *Config) { c.Limits.Timeout = 100 * time.Millisecond })
	conn, err := openWS(t, w)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(context.Background(), websocket.MessageText, []byte(`{"hello":{"name":"deaf","kind":"stage"}}`)); err != nil {
		t.Fatal(err)
	}
	stream, err := api.NewAppsClient(dial(t, w, nil)).Attach(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&api.FromApp{Message: &api.FromApp_Hello{Hello: hello("deaf2", "stage")}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"deaf", "deaf2"} {
		app := w.runtime.wait(t, name).App
		large := tcp(1)
		large.Data = append(large.Data, make([]byte, 60000)...)
		var list []Packet
		for range 256 {
			list = append(list, Packet{In: large, Decision: &flow.Decision{}})
		}
		for range maxTimeouts {
			// If the pipeline waited until its write was given up, the app would be gone after the first.
			if err := app.Packets(context.Background(), list); api.KindOf(err) != codes.DeadlineExceeded {
				t.Errorf("%s: %v; want DeadlineExceeded", name, err)
			}
		}
		w.runtime.leaves(t, name)
	}
}

// TestRESTApps: what REST apps may get wrong: their url, their answers.
func TestRESTApps(t *testing.T) {
	w := serve(t, func(c *Config) {
		c.Limits.Timeout = testwait.Limit
		c.Timeout = func(name string) time.Duration { return map[string]time.Duration{"slow": 300 * time.Millisecond}[name] }
	})
	for _, url := range []string{"", "127.0.0.1:80", "http://", "http://192.0.2.1/", "http://example.com/", "http://localhost.example.com/", "http://[::ffff:192.0.2.1]/",
		"https://127.0.0.1/", "ftp://127.0.0.1/", "file:///etc/passwd", "http://user:pass@127.0.0.1/", "http://127.0.0.1#x", "http://127.1/", "http://0.0.0.0/", "http://169.254.169.254/latest", "%"} {
		err := request(w, "POST", "/v1/apps", fmt.Appendf(nil, `{"name":"a","kind":"stage","url":%q}`, url), &api.Welcome{})
		if err == nil || !strings.Contains(err.Error(), "url") {
			t.Errorf("url %q: %v", url, err)
		}
	}
	if dialLocal("192.0.2.1:80") == nil || dialLocal("127.0.0.1:80") != nil || dialLocal("[::1]:80") != nil {
		t.Error("a name that leads elsewhere is not refused")
	}
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirection is followed") }))
	defer secret.Close()
	for name, x := range map[string]struct {
		answer http.HandlerFunc
		kind   codes.Code
		want   string
	}{
		"redirect": {func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, secret.URL, http.StatusTemporaryRedirect)
		}, codes.Unavailable, "307"},
		"status": {func(rw http.ResponseWriter, r *http.Request) { http.Error(rw, "no", http.StatusTeapot) }, codes.Unavailable, "418"},
		"text":   {func(rw http.ResponseWriter, r *http.Request) { rw.Write([]byte("drop")) }, codes.InvalidArgument, "JSON of Decisions"},
		"id":     {func(rw http.ResponseWriter, r *http.Request) { rw.Write([]byte(`{"id":7}`)) }, codes.InvalidArgument, "decisions have id 7: want 1"},
		"endless": {func(rw http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := rw.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, codes.InvalidArgument, "larger than"},
		"slow": {func(rw http.ResponseWriter, r *http.Request) {
			rw.Write([]byte("{"))
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		}, codes.DeadlineExceeded, "within 300ms"},
	} {
		app := httptest.NewServer(x.answer)
		defer app.Close()
		if err := request(w, "POST", "/v1/apps", fmt.Appendf(nil, `{"name":%q,"kind":"stage","url":%q}`, name, app.URL), &api.Welcome{}); err != nil {
			t.Fatal(err)
		}
		list := batch(1)
		err := w.runtime.wait(t, name).App.Packets(context.Background(), list)
		if api.KindOf(err) != x.kind || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; want %v and %q", name, err, x.kind, x.want)
		}
		untouched(t, list)
	}
}

// TestLease: a REST app that does not register again is gone; one that does
// stays as it is.
func TestLease(t *testing.T) {
	w := serve(t, func(c *Config) { c.Limits.Lease = testwait.Limit })
	body := `{"name":"a","kind":"stage","url":"http://127.0.0.1:9/x"}`
	register := func(body string) error { return request(w, "POST", "/v1/apps", []byte(body), &api.Welcome{}) }
	if err := register(body); err != nil {
		t.Fatal(err)
	}
	first := w.runtime.wait(t, "a")
	if err := register(body); err != nil {
		t.Fatal(err)
	}
	if again, ok := w.runtime.find("a"); !ok || again.App != first.App {
		t.Error("it was renewed, but is another now")
	}
	if err := register(strings.Replace(body, "stage", "observer", 1)); err == nil || !strings.Contains(err.Error(), "as another kind") {
		t.Errorf("as an observer: %v", err)
	}
	if err := register(strings.Replace(body, "/x", "/y", 1)); err == nil || !strings.Contains(err.Error(), "already attached") {
		t.Errorf("with another url: %v", err)
	}
	w = serve(t, func(c *Config) { c.Limits.Lease = 50 * time.Millisecond })
	if err := register(body); err != nil {
		t.Fatal(err)
	}
	w.runtime.leaves(t, "a")
	if err := request(w, "DELETE", "/v1/apps/a", nil, &api.App{}); err == nil || !strings.Contains(err.Error(), "not attached") {
		t.Errorf("DELETE of one that is gone: %v", err)
	}
	if _, err := attachWS(t, w, hello("b", "stage"), each(nil)); err != nil {
		t.Fatal(err)
	}
	if err := request(w, "DELETE", "/v1/apps/b", nil, &api.App{}); err == nil || !strings.Contains(err.Error(), "over ws") {
		t.Errorf("DELETE of one by WebSocket: %v", err)
	}
}

// TestLeaseRenewed: a lease that is renewed in time goes on, and ends a second after
// it was renewed last.
func TestLeaseRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := Config{Limits: Limits{Lease: time.Second}}
		info := AppInfo{Name: "a", Kind: Stage}
		l := &lease{renew: make(chan struct{}, 1)}
		o := &Server{config: config}
		a := newApp(t.Context(), info, l, &config)
		go o.expire(a, l)
		for range 8 {
			time.Sleep(900 * time.Millisecond)
			if _, err := o.renewed(a, l, info); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(999 * time.Millisecond)
		if a.ctx.Err() != nil {
			t.Errorf("it was renewed, but is detached: %v", context.Cause(a.ctx))
		}
		time.Sleep(2 * time.Millisecond)
		if context.Cause(a.ctx) != errExpired {
			t.Errorf("%v a second after it was renewed last, want %v", context.Cause(a.ctx), errExpired)
		}
	})
}

// TestForeignPages: what a browser may have been made to send is refused.
func TestForeignPages(t *testing.T) {
	w := serve(t, nil)
	try := func(method, path, header, value string) int {
		req, err := http.NewRequest(method, "http://"+w.address+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if header == "Host" {
			req.Host = value
		} else {
			req.Header.Set(header, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, path := range []string{"/v1/call/southbound.ListSwitches", "/v1/apps", "/"} {
		for header, value := range map[string]string{"Host": "evil.example:80", "Origin": "http://evil.example"} {
			if got := try("POST", path, header, value); got != http.StatusForbidden {
				t.Errorf("%s with %s %s: status %d", path, header, value, got)
			}
		}
	}
	if got := try("POST", "/v1/call/southbound.ListSwitches", "Origin", "http://"+w.address); got != http.StatusOK {
		t.Errorf("of this very server: status %d", got)
	}
	if got := try("POST", "/v2", "Accept", "*/*"); got != http.StatusNotFound {
		t.Errorf("of nothing: status %d", got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	_, resp, err := websocket.Dial(ctx, "ws://"+w.address+"/v1/apps", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"http://evil.example"}}})
	if err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a WebSocket of a foreign page: %v", err)
	}
}
