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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
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
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
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

// ended waits until none of the commands runs in a machine: those whose words are "sleep N", and captures.
func (s *site) ended(machine string, sleeps ...string) {
	s.t.Helper()
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", s.servers[machine].Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var left []string
		commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			s.t.Fatal(err)
		}
		for _, path := range commands {
			if is, err := os.Readlink(filepath.Join(filepath.Dir(path), "ns/mnt")); err != nil || is != space {
				continue
			}
			b, _ := os.ReadFile(path)
			words := strings.Split(strings.Trim(string(b), "\x00"), "\x00")
			for _, n := range sleeps {
				if len(words) == 2 && words[0] == "sleep" && words[1] == n {
					left = append(left, strings.Join(words, " "))
				}
			}
			if filepath.Base(words[0]) == "dumpcap" {
				left = append(left, "dumpcap")
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("machine %s still runs %q", machine, left)
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
	c.send(websocket.MessageBinary, "sleep 7001 & nohup setsid sleep 7002 & while echo wai''ting; do sleep 7003; done\n")
	c.until("waiting")
	c.send(websocket.MessageBinary, "\x03")
	c.until("# ")
	c.send(websocket.MessageBinary, "exit 3\n")
	if _, reason := c.until(""); !strings.Contains(reason, "exit status 3") {
		s.t.Errorf("ended: %s", reason)
	}
	s.ended("m2", "7001", "7002", "7003")

	id, c = open("s2")
	c.until("s2 (lab " + name + ")# ")
	c.send(websocket.MessageBinary, "ovs-vsctl list-ports $WEFT_LAB_BRIDGE; nohup setsid sleep 7004 & echo star''ted\n")
	if said, _ := c.until("\nstarted"); !strings.Contains(said, "s2-eth1") {
		s.t.Errorf("at a switch: %q", said)
	}
	s.do("curl", "-s", "--unix-socket", s.path("lab.sock"), "-X", "DELETE", "http://lab/v1/lab/consoles/"+id)
	c.until("")
	s.ended("m2", "7004")
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

// read returns what tshark finds in a capture.
func (s *site) read(pcapng []byte, fields ...string) string {
	s.t.Helper()
	args := []string{"-r", s.write("x.pcapng", string(pcapng)), "-T", "fields"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		s.t.Fatal(err)
	}
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
	idle.Close()
	s.ended("m1")
	s.ended("m2")

	cmd := exec.Command("nsenter", "-t", fmt.Sprint(s.hub), "-n", "-m", "--", s.weft, "lab", "capture", "s2", "--name", name, "-w", s.path("s2.pcapng"))
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if about, err := os.Stat(s.path("s2.pcapng")); err == nil && about.Size() > 0 {
			break
		}
		if time.Now().After(end) {
			s.t.Fatal("no capture begins")
		}
	}
	ask("labs/"+name+"/ping", map[string]any{"from": "h1", "to": "h2"}, &ping)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		b, err := os.ReadFile(s.path("s2.pcapng"))
		if err == nil && strings.Contains(s.read(b, "frame.interface_name"), "s2-eth1") {
			break
		}
		if time.Now().After(end) {
			s.t.Fatalf("nothing is captured: %v", err)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		s.t.Errorf("weft lab capture: %v", err)
	}
	s.ended("m2")
}

// killed kills a lab service that has consoles and captures, and a command: nothing of them
// goes on on the machines.
func (s *site) killed(ask func(path string, body, to any) string, service *exec.Cmd, name string) {
	s.t.Helper()
	var is struct{ Console string }
	ask("labs/"+name+"/consoles", map[string]any{"node": "h2", "command": []string{"sh", "-c", "nohup setsid sleep 7005 & echo be''gun; cat"}}, &is)
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
	for _, k := range []*exec.Cmd{service, command} {
		if err := k.Process.Signal(syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
		_ = k.Wait()
	}
	s.ended("m1", "7006", "7007")
	s.ended("m2", "7005")
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
