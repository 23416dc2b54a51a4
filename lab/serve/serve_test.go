package serve

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

// TestLab brings a lab up by the service, looks at it, measures, and changes its links.
func TestLab(t *testing.T) {
	const name = "serve-lab"
	c := serve(t, AllowUp, AllowDown)
	c.up(name)
	all := &api.ListLabsResponse{}
	c.call("GET", "/v1/lab/labs", nil, all)
	found := false
	for _, l := range all.GetLabs() {
		found = found || l.GetName() == name && l.GetState() == "up" && l.GetHosts() == 2
	}
	if !found {
		t.Errorf("labs: %v", all)
	}
	at := "/v1/lab/labs/" + name
	is := &api.LabDetails{}
	c.call("GET", at, nil, is)
	if is.GetFile() != lines(name) || len(is.GetGraph().GetNodes()) != 4 || len(is.GetGraph().GetLinks()) != 3 || is.GetRevision() == "" {
		t.Errorf("lab: %v", is)
	}
	ping := func() *api.PingLabResponse {
		r := &api.PingLabResponse{}
		c.call("POST", at+"/ping", &api.PingLabRequest{From: "h1", To: "h2"}, r)
		return r
	}
	testwait.Until(t, "all answers to a ping", func() bool { return ping().GetReceived() == 3 }) // some come late on a busy machine
	link := &api.LabLink{}
	c.call("POST", at+"/links:set", &api.SetLabLinkRequest{Link: "s1:2-s2:2", Silent: proto.Bool(true)}, link)
	if link.GetState() != "silent" || ping().GetReceived() != 0 {
		t.Errorf("silent: %v", link)
	}
	c.call("POST", at+"/links:set", &api.SetLabLinkRequest{Link: "s1 s2", Silent: proto.Bool(false), DelayMs: proto.Float64(20)}, link)
	if r := ping(); link.GetState() != "up" || link.GetDelayMs() != 20 || r.GetReceived() == 0 || r.GetMinMs() < 40 {
		t.Errorf("delay: %v, %v", link, r)
	}
	c.refused(400, "nothing to set", "POST", at+"/links:set", &api.SetLabLinkRequest{Link: "s1 s2"})
	c.refused(400, "has no link", "POST", at+"/links:set", &api.SetLabLinkRequest{Link: "s1-s9", Down: proto.Bool(true)})
	c.refused(400, "delay_ms", "POST", at+"/links:set", &api.SetLabLinkRequest{Link: "s1 s2", DelayMs: proto.Float64(-1)})
	traffic := &api.RunLabTrafficResponse{}
	c.call("POST", at+"/traffic", &api.RunLabTrafficRequest{Flows: []*api.LabFlow{{From: "h1", To: "h2"}, {From: "h2", To: "h1"}, {From: "h1", To: "h2", Rate: 50}}}, traffic)
	if f := traffic.GetFlows(); len(f) != 3 || f[0].GetReceived() == 0 || f[1].GetReceived() == 0 || f[2].GetReceived() == 0 || f[2].GetReceived() >= f[0].GetReceived() || f[0].GetMeanMs() < 20 {
		t.Errorf("traffic: %v", traffic)
	}
	use := &api.LabUsage{}
	c.call("GET", at+"/usage", nil, use)
	if len(use.GetNodes()) != 2 || use.GetShared().GetProcesses() < 2 || use.GetShared().GetMemory() == 0 || use.GetSeconds() <= 0 {
		t.Errorf("usage: %v", use)
	}
	down := &api.DownLabResponse{}
	c.call("POST", at+":down", &api.DownLabRequest{}, down)
	if !down.GetDown() || lab.Exists(name) {
		t.Errorf("down: %v", down)
	}
	c.refused(404, "no such lab", "GET", at, nil)
}

// TestRefused: what is to be root on the machine needs its allowance, and what is
// wrong is told.
func TestRefused(t *testing.T) {
	c := serve(t)
	text := lines("serve-no")
	for what, r := range map[string]struct {
		verb, path string
		req        proto.Message
	}{
		AllowUp:      {"POST", "/v1/lab/labs:up", &api.UpLabRequest{File: text}},
		AllowDown:    {"POST", "/v1/lab/labs/serve-no:down", &api.DownLabRequest{}},
		AllowExec:    {"POST", "/v1/lab/labs/serve-no/consoles", &api.OpenLabConsoleRequest{Node: "h1"}},
		AllowCapture: {"GET", "/v1/lab/labs/serve-no/capture?node=h1", nil},
	} {
		c.refused(403, "weft lab serve --allow "+what, r.verb, r.path, r.req)
	}
	c.refused(403, "allow exec", "GET", "/v1/lab/consoles/X", nil)
	c.refused(403, "allow exec", "DELETE", "/v1/lab/consoles/X", nil)
	if lab.Exists("serve-no") || lab.Exists("..") {
		t.Error("there is a lab")
	}
	for _, path := range []string{"/v1/lab/labs/%2e%2e", "/v1/lab/labs/a.b"} {
		c.refused(404, "not a name for a lab", "GET", path, nil)
	}
	c = serve(t, AllowUp)
	run := strings.Replace(text, "{name: h1, switch: s1}", "{name: h1, switch: s1, run: [sleep 1]}", 1)
	c.refused(403, "--allow up,run", "POST", "/v1/lab/labs:up", &api.UpLabRequest{File: run})
	c.refused(400, "lab.yaml:2: unknown key", "POST", "/v1/lab/labs:up", &api.UpLabRequest{File: "name: x\nswichtes: []\n"})
	c.refused(400, "octets", "POST", "/v1/lab/labs:up", &api.UpLabRequest{File: strings.Repeat("#", maxFile+1)})
	c.refused(400, `"../x" is not a name`, "POST", "/v1/lab/labs:up", &api.UpLabRequest{File: text, Name: "../x"})
	c.refused(400, "not a controller's address", "POST", "/v1/lab/labs:up", &api.UpLabRequest{File: text, Controllers: []string{"tcp:1.2.3.4;id"}})
	check := &api.CheckLabResponse{}
	c.call("POST", "/v1/lab/labs:check", &api.CheckLabRequest{File: "name: x\nswichtes: []\n"}, check)
	if p := check.GetProblems(); len(p) == 0 || p[0].GetLine() != 2 && p[len(p)-1].GetLine() != 2 {
		t.Errorf("problems: %v", check)
	}
	where := &api.MapLabTestbedResponse{}
	c.call("POST", "/v1/lab/testbeds:map", &api.MapLabTestbedRequest{File: text, Machines: "machines: [{name: m1, shh: x}]"}, where)
	if p := where.GetProblems(); len(p) == 0 || p[0].GetOf() != "machines" || p[0].GetLine() != 1 {
		t.Errorf("problems: %v", where)
	}
	where.Reset()
	c.call("POST", "/v1/lab/testbeds:map", &api.MapLabTestbedRequest{File: text,
		Machines: "machines: [{name: m1, ssh: 192.0.2.1, nodes: [s2]}, {name: m2, ssh: 192.0.2.2}]"}, where)
	if len(where.GetProblems()) != 0 || len(where.GetMapping()) != 4 || len(where.GetTunnels()) != 1 || where.GetLoads()[0].GetNodes() != 2 {
		t.Errorf("mapping: %v", where)
	}
	if err := (Options{Allow: []string{"all"}}).Check(); err == nil || !strings.Contains(err.Error(), "exec, capture") {
		t.Errorf("allow all: %v", err)
	}
}

// TestCapture: what is captured can be read, a wrong filter is told, and nothing
// goes on when the client has gone.
func TestCapture(t *testing.T) {
	const name = "serve-capture"
	c := serve(t, AllowUp, AllowCapture)
	c.up(name)
	at := "/v1/lab/labs/" + name
	c.refused(400, `"icmpp" is not a filter`, "GET", at+"/capture?node=h1&filter=icmpp", nil)
	c.refused(400, "zero byte", "GET", at+"/capture?node=h1&filter=icmp%00", nil)
	c.refused(404, "no port 9; allowed: 1, 2", "GET", at+"/capture?node=s1&port=9", nil)
	c.refused(400, "octets", "GET", at+"/capture?node=s1&octets=1e9", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	get := func(query url.Values) *http.Response {
		req, err := http.NewRequestWithContext(ctx, "GET", "http://lab"+at+"/capture?"+query.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
		return resp
	}
	endless := get(url.Values{"node": {"s1"}})
	defer endless.Body.Close()
	whole := get(url.Values{"node": {"s2"}, "filter": {"icmp"}, "octets": {"3000"}}) // of its ports alone
	defer whole.Body.Close()
	resp := get(url.Values{"node": {"s1"}, "port": {"2"}, "filter": {"icmp[icmptype] = icmp-echo"}, "octets": {"900"}})
	defer resp.Body.Close()
	r := &api.PingLabResponse{}
	c.call("POST", at+"/ping", &api.PingLabRequest{From: "h1", To: "h2", Count: 30}, r)
	b, err := io.ReadAll(resp.Body) // until there are so many octets
	if err != nil || len(b) > 900 {
		t.Fatalf("%d octets, %v", len(b), err)
	}
	file := filepath.Join(t.TempDir(), "x.pcapng")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tshark", "-r", file, "-T", "fields", "-e", "ip.src", "-e", "icmp.type").Output()
	if text := strings.TrimSpace(string(out)); err != nil || len(strings.Split(text, "\n")) < 3 || strings.Trim(text, "10.\t8\n") != "" {
		t.Errorf("captured %q, %v", out, err)
	}
	if b, err = io.ReadAll(whole.Body); err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err = exec.Command("tshark", "-r", file, "-T", "fields", "-e", "frame.interface_name").Output()
	if at := strings.Fields(string(out)); err != nil || !slices.Contains(at, "s2-eth1") || !slices.Contains(at, "s2-eth2") ||
		slices.ContainsFunc(at, func(i string) bool { return !strings.HasPrefix(i, "s2-") }) {
		t.Errorf("captured without a port at %q, %v", at, err)
	}
	cancel()
	quiet(t, name)
}

// quiet waits until nothing runs in a lab but its Open vSwitch.
func quiet(t *testing.T, name string) {
	t.Helper()
	l, err := lab.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(50 * time.Millisecond) {
		use, err := l.Usage()
		if err != nil {
			t.Fatal(err)
		}
		if len(use) == 1 && use[l.SwitchNetns()].Processes == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("something goes on: %v", use)
		}
	}
}

// TestKilled: labs go on without the service, and the next one has them; so it is
// with labs of the command line. What consoles and captures have left, it ends.
func TestKilled(t *testing.T) {
	const name = "serve-killed"
	socket := filepath.Join(t.TempDir(), "lab.sock")
	cmd := process(t, socket)
	k := clientOf(t, socket)
	k.up(name)
	one := &api.LabConsole{}
	k.call("POST", "/v1/lab/labs/"+name+"/consoles", &api.OpenLabConsoleRequest{Node: "h1", Command: []string{"/bin/sh", "-c", "nohup setsid sleep 600 & echo be''gun; cat"}}, one)
	k.attach(one.GetConsole()).until("begun")
	resp, err := k.Get("http://lab/v1/lab/labs/" + name + "/capture?node=h2&filter=udp")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	l, err := lab.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := l.Ping(t.Context(), "h1", "h2", traffic.PingOptions{}); err != nil || r.Received != 3 {
		t.Errorf("ping without the service: %v, %v", r, err)
	}
	if err := l.LinkDown(t.Context(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	process(t, socket)
	c := clientOf(t, socket)
	quiet(t, name)
	is := &api.LabDetails{}
	c.call("GET", "/v1/lab/labs/"+name, nil, is)
	if is.GetState() != "up" || is.GetFile() != lines(name) || is.GetGraph().GetLinks()[2].GetState() != "down" {
		t.Errorf("lab: %v", is)
	}
}

// TestGarbage: who sends garbage or nothing does not keep others from being served.
func TestGarbage(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "lab.sock")
	process(t, socket)
	c := clientOf(t, socket)
	for i := range 200 {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		switch i % 4 {
		case 0:
			_, _ = io.WriteString(conn, "\x00\xff garbage\r\n\r\n")
		case 1:
			_, _ = io.WriteString(conn, "POST /v1/lab/labs:check HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"file\": [[[[")
		case 2:
			_, _ = io.WriteString(conn, "POST /v1/lab/labs:check HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{\"fil\": 1")
		}
	}
	c.call("GET", "/v1/lab", nil, &api.LabServiceInfo{})
}

// TestMachinesRefused: without an identity of its own the service reaches no machine, whatever
// a request names.
func TestMachinesRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, AllowUp)
	for _, machines := range []string{"machines: [{name: m1, ssh: root@192.0.2.1}]", "machines: [{name: m1, ssh: root@192.0.2.1}]\nidentity: /root/.ssh/id_rsa"} {
		status, said := c.try("POST", "/v1/lab/labs:up", &api.UpLabRequest{File: "switches: [{name: s1}]\nname: nowhere\n", Machines: machines}, nil)
		if status != http.StatusForbidden || !strings.Contains(said, "--ssh-identity") {
			t.Errorf("%d %s", status, said)
		}
	}
	for _, o := range []Options{{SSHIdentity: "/etc/hosts"}, {SSHIdentity: "/nowhere", SSHKnownHosts: "/etc/hosts"}, {SSHIdentity: "/etc/a b", SSHKnownHosts: "/etc/hosts"}} {
		if o.Check() == nil {
			t.Errorf("%+v is allowed", o)
		}
	}
}
