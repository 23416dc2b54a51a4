package test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// coreProcesses is a core whose controller is processes of their own.
type coreProcesses struct {
	*core
	front string // host or packet-in
	web   string // the address of the API
	up    func() *exec.Cmd
}

// startCore brings up a core with two instances of each type, and a controller with a front in
// a host or, packet-in, without one; it waits until scp knows the core.
func startCore(t *testing.T, front string) (g *coreProcesses, controller *exec.Cmd) {
	t.Helper()
	name := fmt.Sprintf("t%d", time.Now().UnixNano()%1e9)
	text, err := plans.Read("5gc")
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Replace(string(text), "weft-5gc.scp", "weft-"+name+".scp", 1)
	if front == "packet-in" {
		var kept []string
		for line := range strings.SplitSeq(plan, "\n") {
			if key := strings.TrimSpace(line); !strings.HasPrefix(key, "listen: 10.0.0.2") && !strings.HasPrefix(key, "namespace:") {
				kept = append(kept, line)
			}
		}
		plan = strings.Join(kept, "\n")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	listen, web := freeAddress(t), freeAddress(t)
	up := func() *exec.Cmd {
		c := exec.Command(testprogram.WithBench(t), "up", file, "--user", "root", "--data-dir", filepath.Join(dir, "data"), "--listen", listen, "--http", web)
		c.Stderr = testWriter{t}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Signal(syscall.SIGTERM); _ = c.Wait() })
		return c
	}
	controller = up()
	topo, err := topology.Core5G(2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(context.Background(), topo, lab.Options{
		Name: name, Temporary: true, Controllers: []string{"tcp:" + listen}, KeeperCommand: []string{os.Args[0]}, Weft: testprogram.WithBench(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	g = &coreProcesses{&core{l, t, nil}, front, web, up}
	eventually(t, "scp knows the core", g.intercepts)
	return g, controller
}

// intercepts reports whether the front is before the NRF, and knows the core.
func (g *coreProcesses) intercepts() bool {
	resp, err := http.Get("http://" + g.web + "/v1/scp")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var s struct {
		Front     string
		FrontBy   string `json:"front_by"`
		Producers []struct{ State string }
	}
	return json.NewDecoder(resp.Body).Decode(&s) == nil && s.Front == "intercepting" && s.FrontBy == g.front && len(s.Producers) >= 10
}

// discover asks for UDMs, and reports whether the answer has end points.
func (g *coreProcesses) discover(host, as string, more ...string) (status int, endPoints bool) {
	g.t.Helper()
	status, body, _ := g.curl(host, "http://10.0.0.1:7777/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type="+as, more...)
	return status, strings.Contains(body, "10.0.255.")
}

// asks has a host discover until the answer has end points, or producers.
func (g *coreProcesses) asks(host, as string, endPoints bool) {
	g.t.Helper()
	eventually(g.t, "discovery", func() bool {
		status, has := g.discover(host, as, "-m", "1")
		return status == 200 && has == endPoints
	})
}

// hasWay waits until the switches have a host's way to the NRF.
func (g *coreProcesses) hasWay(host string) {
	g.t.Helper()
	mac := flow.MAC(lookup(g.t, g.Lab, host).MAC).String()
	eventually(g.t, host+" has its way to the NRF", func() bool {
		there, back := false, false
		for _, line := range g.flows("cookie=0x5745120000000000/0xffffff0000000000") {
			way := strings.Contains(line, fmt.Sprintf("priority=%d,", flow.PriorityNRFWay))
			there, back = there || way && strings.Contains(line, "dl_src="+mac), back || way && strings.Contains(line, "dl_dst="+mac)
		}
		return there && back
	})
}

// flows returns the entries of all switches that match.
func (g *coreProcesses) flows(match ...string) (lines []string) {
	g.t.Helper()
	for _, sw := range g.Topology().Switches {
		out, err := g.OfCtl(context.Background(), sw.Name, "dump-flows", match...)
		if err != nil {
			g.t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			lines = append(lines, sw.Name+line)
		}
	}
	return lines
}

// TestScpStopped: the controller is stopped while a request is under way. That one is answered by
// the front, all others then by the NRF, and none is lost; the switches have nothing that leads
// to the front.
func TestScpStopped(t *testing.T) {
	t.Parallel()
	for _, front := range []string{"host", "packet-in"} {
		t.Run(front, func(t *testing.T) {
			g, controller := startCore(t, front)
			for !g.stopped(controller) {
				controller = g.up() // the machine was too busy to answer within the front's time
			}
		})
	}
}

// stopped stops the controller, and checks what becomes of requests. It is false if the request
// that was under way did not end within the time that a front gives it.
func (g *coreProcesses) stopped(controller *exec.Cmd) bool {
	t := g.t
	t.Helper()
	eventually(t, "scp knows the core", g.intercepts)
	g.asks("amf1", "AMF", true)
	g.hasWay("amf1")
	const id = "11111111-1111-4111-8111-111111111111"
	profile := fmt.Sprintf(`{"nfInstanceId": %q, "nfType": "BSF", "nfStatus": "REGISTERED", "heartBeatTimer": 300, "ipv4Addresses": ["10.0.5.1"]}`, id)
	body, rest := io.Pipe()
	said, says := io.Pipe()
	slow := exec.Command("curl", "-sv", "--http1.1", "-H", "Expect: 100-continue", "--expect100-timeout", "60", "-H", "Content-Type: application/json", "-T", "-",
		"-w", "\n%{http_code}\n", "http://10.0.0.1:7777/nnrf-nfm/v1/nf-instances/"+id)
	slow.Stdin, slow.Stdout, slow.Stderr = body, says, says
	if err := g.StartCmd("pcf1", slow); err != nil {
		t.Fatal(err)
	}
	lines, all := make(chan string, 1000), []string{}
	go func() { // curl blocks otherwise
		defer close(lines)
		for s := bufio.NewScanner(said); s.Scan(); {
			lines <- s.Text()
		}
	}()
	for line := range lines {
		if all = append(all, line); strings.Contains(line, "100 Continue") {
			break // the front reads the body
		}
	}
	_, _ = io.WriteString(rest, profile[:20])
	began := time.Now()
	_ = controller.Process.Signal(syscall.SIGTERM)
	ended := make(chan struct{})
	go func() { _ = controller.Wait(); close(ended) }()
	ask := func() bool {
		t.Helper()
		status, endPoints := g.discover("amf1", "AMF", "-m", "60")
		if status != 200 {
			t.Errorf("a discovery %v after the stop: status %d", time.Since(began).Round(time.Millisecond), status)
		}
		return endPoints
	}
	for ask() {
	}
	_, _ = io.WriteString(rest, profile[20:])
	rest.Close()
	quick := time.Since(began) < 2*time.Second
	err := slow.Wait()
	says.Close()
	for line := range lines {
		all = append(all, line)
	}
	if quick && (err != nil || all[len(all)-1] != "201" && all[len(all)-1] != "200") {
		t.Errorf("the request under way: %v\n%s", err, strings.Join(all, "\n"))
	}
	for is := true; is; {
		select {
		case <-ended:
			is = false
		default:
			ask()
		}
	}
	for _, line := range g.flows() {
		if strings.Contains(line, "nw_dst=10.0.0.1,") && strings.Contains(line, "tp_dst=7777") && strings.Contains(line, "CONTROLLER") {
			t.Errorf("the front has ended, and a switch has %s", line)
		}
	}
	ask()
	return quick
}
