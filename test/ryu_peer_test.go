package test

import (
	"encoding/json"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The flags of make ryu-parity: by them Ryu itself is asked, side by side with
// Weft, and what it answers is kept.
var (
	ryuDirectory = flag.String("ryu", "", "directory of a Python environment with Ryu 4.34, to ask it as well")
	ryuRecord    = flag.Bool("ryu-record", false, "write what Ryu answers to testdata/ryu")
)

const ryuAnswers = "testdata/ryu/answers.json"

// startRyu runs applications of Ryu until the test ends; it returns where it
// answers requests.
func startRyu(t *testing.T, openflow string, apps ...string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(openflow)
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	_, web, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", port, "--wsapi-host", "127.0.0.1", "--wsapi-port", web}, apps...)
	cmd := exec.Command(filepath.Join(*ryuDirectory, "bin", "ryu-manager"), args...)
	log, err := os.Create(filepath.Join(t.TempDir(), "ryu.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		ended := time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		ended.Stop()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the end of Ryu's log:\n%s", text[max(0, len(text)-4000):])
		}
		log.Close()
	})
	return address
}

// ryuListens waits until a controller answers on a path with a list of n.
func ryuListens(t *testing.T, address, path string, n int) {
	t.Helper()
	eventually(t, "switches known at "+address, func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		c.Close()
		a, _ := (&ryuRequest{method: "GET", path: path}).ask(t, address)
		list, _ := a.Body.([]any)
		return len(list) == n
	})
}

// knowsSwitches waits until a controller has n switches.
func knowsSwitches(t *testing.T, address string, n int) {
	t.Helper()
	ryuListens(t, address, "/stats/switches", n)
}

// ryuRecorded reads what Ryu has answered when it was asked last.
func ryuRecorded(t *testing.T) map[string][]ryuAnswer {
	t.Helper()
	text, err := os.ReadFile(ryuAnswers)
	if err != nil {
		t.Fatalf("%v; make ryu-parity RECORD=1 writes it", err)
	}
	all := map[string][]ryuAnswer{}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// ryuKeep writes the answers of one test.
func ryuKeep(t *testing.T, name string, answers []ryuAnswer) {
	t.Helper()
	all := map[string][]ryuAnswer{}
	if _, err := os.Stat(ryuAnswers); err == nil {
		all = ryuRecorded(t)
	}
	all[name] = answers
	var b strings.Builder
	b.WriteString("{")
	for i, name := range []string{"rest", "topology", "firewall", "qos", "router"} {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n\"" + name + "\": [\n")
		for i, a := range all[name] {
			if i > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(jsonText(a))
		}
		b.WriteString("\n]")
	}
	b.WriteString("\n}\n")
	if err := os.WriteFile(ryuAnswers, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ryuJudge compares an answer of Weft's with one of Ryu's.
func ryuJudge(t *testing.T, r *ryuRequest, weft, ryu ryuAnswer) {
	t.Helper()
	switch {
	case ryu.Request != weft.Request:
		t.Fatalf("line %d: the recorded answer is for %s, not for %s: run make ryu-parity RECORD=1", r.line, ryu.Request, weft.Request)
	case r.differs != 0:
		if weft.Status != r.differs {
			t.Errorf("line %d: %s: status %d, want %d: %s", r.line, r, weft.Status, r.differs, r.why)
		}
		if ryu.Status == weft.Status && jsonText(ryu.Body) == jsonText(weft.Body) && ryu.Text == weft.Text {
			t.Errorf("line %d: %s: Ryu answers %d and the same as well; the note is out of date", r.line, r, ryu.Status)
		}
	case weft.Status != ryu.Status:
		t.Errorf("line %d: %s: status %d, Ryu's %d (%s)", r.line, r, weft.Status, ryu.Status, weft.Text)
	case jsonText(weft.Body) != jsonText(ryu.Body):
		t.Errorf("line %d: %s:\nWeft %s\nRyu  %s", r.line, r, jsonText(weft.Body), jsonText(ryu.Body))
	case weft.Text != ryu.Text:
		t.Errorf("line %d: %s: %q, Ryu's %q", r.line, r, weft.Text, ryu.Text)
	}
}
