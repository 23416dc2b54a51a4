package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/keeper"
)

// socketEnv turns the test's program into a service at a socket, which tests kill.
const socketEnv = "WEFT_SERVE_TEST_SOCKET"

func TestMain(m *testing.M) {
	keeper.RunIfAsked()
	if socket := os.Getenv(socketEnv); socket != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := Run(ctx, options(socket, Allowances())); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func options(socket string, allow []string) Options {
	exe, _ := os.Executable()
	return Options{Socket: socket, Allow: allow, Program: exe, Version: "test", Log: slog.New(slog.DiscardHandler)}
}

// client is one of a service at a socket.
type client struct {
	t *testing.T
	http.Client
}

func clientOf(t *testing.T, socket string) *client {
	c := &client{t: t, Client: http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}}
	for i := 0; ; i++ {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			return c
		}
		if i > 1000 {
			t.Fatal("nobody listens at ", socket)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// serve runs a service in this process.
func serve(t *testing.T, allow ...string) *client {
	socket := filepath.Join(t.TempDir(), "lab.sock")
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, options(socket, allow)) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return clientOf(t, socket)
}

// process runs a service in a process of its own.
func process(t *testing.T, socket string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), socketEnv+"="+socket)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// try makes a request and returns the status and the error's text, if it is one.
func (c *client) try(verb, path string, req, resp proto.Message) (int, string) {
	c.t.Helper()
	var body io.Reader
	if req != nil {
		b, err := protojson.Marshal(req)
		if err != nil {
			c.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequest(verb, "http://lab"+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	got, err := c.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if got.StatusCode != http.StatusOK {
		var e struct{ Message string }
		if err := json.Unmarshal(b, &e); err != nil {
			c.t.Fatalf("%s %s: %s: %s", verb, path, got.Status, b)
		}
		return got.StatusCode, e.Message
	}
	if resp != nil {
		if err := protojson.Unmarshal(b, resp); err != nil {
			c.t.Fatalf("%s %s: %v: %s", verb, path, err, b)
		}
	}
	return got.StatusCode, ""
}

func (c *client) call(verb, path string, req, resp proto.Message) {
	c.t.Helper()
	if code, text := c.try(verb, path, req, resp); code != http.StatusOK {
		c.t.Fatalf("%s %s: %d %s", verb, path, code, text)
	}
}

// refused expects an error with a text in it.
func (c *client) refused(code int, text, verb, path string, req proto.Message) {
	c.t.Helper()
	if got, said := c.try(verb, path, req, nil); got != code || !strings.Contains(said, text) {
		c.t.Errorf("%s %s: %d %q; want %d %q", verb, path, got, said, code, text)
	}
}

// done waits for a job's end.
func (c *client) done(id string) *api.LabJob {
	c.t.Helper()
	var j *api.LabJob
	testwait.Until(c.t, "the job ends", func() bool {
		j = &api.LabJob{}
		c.call("GET", "/v1/lab/jobs/"+id, nil, j)
		return j.GetDone()
	})
	return j
}

func lines(name string) string {
	return "name: " + name + `
controller: none
switches: [{name: s1, fail_mode: standalone}, {name: s2, fail_mode: standalone}]
hosts: [{name: h1, switch: s1}, {name: h2, switch: s2}]
links: [{a: s1, b: s2}]
x-loom: {s1: [1, 2]}
`
}

// up brings a lab up by the service.
func (c *client) up(name string) {
	c.t.Helper()
	c.t.Cleanup(func() {
		if err := lab.Down(context.Background(), name); err != nil {
			c.t.Error(err)
		}
	})
	resp := &api.UpLabResponse{}
	c.call("POST", "/v1/lab/labs:up", &api.UpLabRequest{File: lines(name)}, resp)
	if j := c.done(resp.GetJob()); j.GetError() != "" || len(j.GetSteps()) != 4 || j.GetSteps()[0].GetState() != stepDone {
		c.t.Fatalf("up: %v", j)
	}
}
