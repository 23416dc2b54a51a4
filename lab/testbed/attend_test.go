package testbed

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/weft-sdn/weft/internal/testwait"
)

// socketClient is one of the lab service of the site.
func (s *site) socketClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.path("lab.sock"))
	}}}
}

// console is a terminal of the lab service to which the test is attached.
type console struct {
	t  *testing.T
	ws *websocket.Conn
}

func (s *site) attach(id string) *console {
	s.t.Helper()
	ws, _, err := websocket.Dial(s.t.Context(), "ws://lab/v1/lab/consoles/"+id, &websocket.DialOptions{HTTPClient: s.socketClient()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { ws.CloseNow() })
	return &console{s.t, ws}
}

func (c *console) send(kind websocket.MessageType, text string) {
	c.t.Helper()
	if err := c.ws.Write(c.t.Context(), kind, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// until returns what the terminal says until it has said a text; an empty one: until it ends.
func (c *console) until(text string) (said, reason string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testwait.Limit)
	defer cancel()
	for text == "" || !strings.Contains(said, text) {
		_, b, err := c.ws.Read(ctx)
		if err != nil && (text != "" || websocket.CloseStatus(err) != websocket.StatusNormalClosure) {
			c.t.Fatalf("%v; it said %q; want %q", err, said, text)
		} else if err != nil {
			return said, err.Error()
		}
		said += string(b)
	}
	return said, ""
}

// running returns the commands that run in the nodes that a machine has of a lab.
func (s *site) running(name, machine string) (found []string) {
	s.t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range environments {
		b, _ := os.ReadFile(path) // it may have ended
		if slices.Contains(strings.Split(string(b), "\x00"), "WEFT_LAB="+PartName(name, machine)) {
			words, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			found = append(found, strings.TrimSpace(strings.ReplaceAll(string(words), "\x00", " ")))
		}
	}
	return found
}

// runs waits until each of the commands runs in a node that a machine has of a lab.
func (s *site) runs(name, machine string, commands ...string) {
	s.t.Helper()
	var now []string
	s.until(func() bool {
		now = s.running(name, machine)
		return !slices.ContainsFunc(commands, func(c string) bool {
			return !slices.ContainsFunc(now, func(is string) bool { return strings.HasPrefix(filepath.Base(is), c) })
		})
	}, "machine %s does not run all of %q", machine, commands)
}

// ended waits until no command runs in the nodes that a machine has of a lab.
func (s *site) ended(name, machine string) {
	s.t.Helper()
	s.until(func() bool { return len(s.running(name, machine)) == 0 }, "machine %s still runs commands", machine)
}

// until waits until something holds.
func (s *site) until(holds func() bool, format string, args ...any) {
	s.t.Helper()
	for end := time.Now().Add(testwait.Limit); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf(format, args...)
		}
	}
}

// consoles opens consoles in nodes of the lab, one of which has a machine of its own.
func (s *site) consoles(ask func(path string, body, to any) string, name string) {
	s.t.Helper()
	at := "labs/" + name + "/consoles"
	open := func(node string, command ...string) (string, *console) {
		s.t.Helper()
		var is struct{ Console string }
		if said := ask(at, map[string]any{"node": node, "command": command, "rows": 30, "cols": 100}, &is); is.Console == "" {
			s.t.Fatal(said)
		}
		return is.Console, s.attach(is.Console)
	}
	if said := ask(at, map[string]any{"node": "h9"}, nil); !strings.Contains(said, "no node") {
		s.t.Error(said)
	}
	id, c := open("h2", "/bin/sh")
	c.send(websocket.MessageBinary, "ip -o -4 addr show eth0; stty size; pwd; echo at $WEFT_LAB_HOST\n")
	if said, _ := c.until("at h2"); !strings.Contains(said, "10.0.0.2/24") || !strings.Contains(said, "30 100") || !strings.Contains(said, "\n/\r") {
		s.t.Errorf("said %q", said)
	}
	c.send(websocket.MessageText, `{"rows":11,"cols":77}`)
	c.send(websocket.MessageBinary, "until stty size | grep '11 77'; do sleep 0.1; done; echo wi''de\n")
	c.until("wide")
	c.ws.CloseNow()
	c = s.attach(id)
	c.until("wide")
	c.send(websocket.MessageBinary, "sleep 7001 & nohup setsid sleep 7002 >/dev/null 2>&1 & sleep 7003\n")
	s.runs(name, "m2", "sleep 7001", "sleep 7002", "sleep 7003") // only then the last takes ^C
	c.send(websocket.MessageBinary, "\x03")
	c.until("# ")
	c.send(websocket.MessageBinary, "exit 3\n")
	if _, reason := c.until(""); !strings.Contains(reason, "exit status 3") {
		s.t.Errorf("ended: %s", reason)
	}
	s.ended(name, "m2")

	id, c = open("s2")
	c.until("s2 (lab " + name + ")# ")
	c.send(websocket.MessageBinary, "ovs-vsctl list-ports $WEFT_LAB_BRIDGE; nohup setsid sleep 7004 >/dev/null 2>&1 & echo star''ted\n")
	if said, _ := c.until("\nstarted"); !strings.Contains(said, "s2-eth1") {
		s.t.Errorf("at a switch: %q", said)
	}
	s.runs(name, "m2", "sleep 7004")
	s.do("curl", "-s", "--unix-socket", s.path("lab.sock"), "-X", "DELETE", "http://lab/v1/lab/consoles/"+id)
	c.until("")
	s.ended(name, "m2")
}

// many opens many consoles at a machine at once, more than its sshd lets in at a time.
func (s *site) many(ask func(path string, body, to any) string, name string) {
	s.t.Helper()
	const n = 24
	ids := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var is struct{ Console string }
			ask("labs/"+name+"/consoles", map[string]any{"node": "h2", "command": []string{"echo", "here"}}, &is)
			ids[i] = is.Console
		})
	}
	wg.Wait()
	for _, id := range ids {
		if said, reason := s.attach(id).until(""); !strings.Contains(said, "here") {
			s.t.Errorf("%q, %s", said, reason)
		}
	}
}

// capture asks the lab service for a capture.
func (s *site) capture(name, query string) (status int, body io.ReadCloser) {
	s.t.Helper()
	resp, err := s.socketClient().Get("http://lab/v1/lab/labs/" + name + "/capture?" + query)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp.StatusCode, resp.Body
}

// read returns what tshark finds in a capture, of which the end may be missing.
func (s *site) read(pcapng []byte, fields ...string) string {
	s.t.Helper()
	args := []string{"-r", s.write("x.pcapng", string(pcapng)), "-T", "fields"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, _ := exec.Command("tshark", args...).Output() // it fails at what is cut short
	return string(out)
}

// captures captures at nodes of the lab, by the service and by the command.
func (s *site) captures(ask func(path string, body, to any) string, name string) {
	s.t.Helper()
	for query, want := range map[string]string{
		"node=h2&filter=icmpp": `capture at h2 (machine m2): \"icmpp\" is not a filter`,
		"node=s2&port=9":       "no port 9",
		"node=h9":              "no node",
	} {
		_, body := s.capture(name, query)
		if said, _ := io.ReadAll(body); !strings.Contains(string(said), want) {
			s.t.Errorf("%s; want %s", said, want)
		}
	}
	_, idle := s.capture(name, "node=h1&filter=udp")
	status, body := s.capture(name, "node=h2&filter=icmp&octets=700")
	var ping struct{ Received int }
	if ask("labs/"+name+"/ping", map[string]any{"from": "h1", "to": "h2", "count": 20}, &ping); ping.Received == 0 || status != http.StatusOK {
		s.t.Error(status, ping)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		s.t.Fatal(err)
	}
	if text := s.read(b, "ip.src", "icmp.type"); !strings.Contains(text, "10.0.0.1\t8") || len(b) > 700 {
		s.t.Errorf("%d octets: %s", len(b), text)
	}
	s.runs(name, "m1", "dumpcap")
	idle.Close()
	s.ended(name, "m1")
	s.ended(name, "m2")

	cmd := exec.Command("nsenter", "-t", fmt.Sprint(s.hub), "-n", "-m", "--", s.weft, "lab", "capture", "s2", "--name", name, "-w", s.path("s2.pcapng"))
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.until(func() bool {
		about, err := os.Stat(s.path("s2.pcapng"))
		return err == nil && about.Size() > 0
	}, "no capture begins")
	ask("labs/"+name+"/ping", map[string]any{"from": "h1", "to": "h2"}, &ping)
	s.until(func() bool {
		b, err := os.ReadFile(s.path("s2.pcapng"))
		return err == nil && strings.Contains(s.read(b, "frame.interface_name"), "s2-eth1")
	}, "nothing is captured")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		s.t.Errorf("weft lab capture: %v", err)
	}
	s.ended(name, "m2")
}

// killed kills a lab service that has consoles and captures, and a command: nothing of them
// goes on on the machines.
func (s *site) killed(ask func(path string, body, to any) string, service *exec.Cmd, name string) {
	s.t.Helper()
	var is struct{ Console string }
	ask("labs/"+name+"/consoles", map[string]any{"node": "h2", "command": []string{"sh", "-c", "nohup setsid sleep 7005 >/dev/null 2>&1 & echo be''gun; cat"}}, &is)
	s.attach(is.Console).until("begun")
	s.capture(name, "node=h2&filter=udp")
	command := exec.Command("nsenter", "-t", fmt.Sprint(s.hub), "-n", "-m", "--", s.weft, "lab", "exec", "h1", "--name", name, "--", "sh", "-c", "sleep 7006 & echo begun; sleep 7007")
	out, err := command.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("begun\n"))); err != nil {
		s.t.Fatal(err)
	}
	s.runs(name, "m1", "sleep 7006", "sleep 7007")
	s.runs(name, "m2", "sleep 7005", "cat", "dumpcap")
	for _, k := range []*exec.Cmd{service, command} {
		if err := k.Process.Signal(syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
		_ = k.Wait()
	}
	s.ended(name, "m1")
	s.ended(name, "m2")
}

// hangs stops the sshd of a machine, which then answers nobody: what is asked of it fails in time,
// with its name, and what is asked of the other goes on meanwhile.
func (s *site) hangs(ask func(path string, body, to any) string, name string) {
	s.t.Helper()
	stop := func(sig syscall.Signal) {
		s.t.Helper()
		if err := syscall.Kill(-s.servers["m2"].Process.Pid, sig); err != nil {
			s.t.Fatal(err)
		}
	}
	stop(syscall.SIGSTOP)
	defer stop(syscall.SIGCONT)
	var is struct{ Console string }
	ask("labs/"+name+"/consoles", map[string]any{"node": "h2"}, &is)
	hung := s.attach(is.Console)
	refused := make(chan string, 1)
	go func() {
		resp, err := s.socketClient().Get("http://lab/v1/lab/labs/" + name + "/capture?node=h2")
		if err != nil {
			refused <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		refused <- string(b)
	}()
	ask("labs/"+name+"/consoles", map[string]any{"node": "h1", "command": []string{"echo", "it goes on"}}, &is)
	s.attach(is.Console).until("it goes on")
	if said, reason := hung.until(""); !strings.Contains(reason, "machine m2: ssh has lost it") || !strings.Contains(said, "timed out") {
		s.t.Errorf("console: %q, %s", said, reason)
	}
	if said := <-refused; !strings.Contains(said, "machine m2") || !strings.Contains(said, "timed out") {
		s.t.Errorf("capture: %s", said)
	}
}
