package rootpart

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// serve answers until the test ends, for a user other than root.
func serve(t *testing.T, verbs map[string]Verb) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Server{UID: 64653, Verbs: verbs}.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return path
}

func TestAsk(t *testing.T) {
	path := serve(t, map[string]Verb{
		"double": func(_ context.Context, b json.RawMessage) (any, error) {
			var n int
			err := json.Unmarshal(b, &n)
			return 2 * n, err
		},
		"fail": func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("it is full") },
	})
	var n int
	if err := Ask(context.Background(), path, "double", 21, &n); err != nil || n != 42 {
		t.Errorf("double: %d, %v", n, err)
	}
	for verb, want := range map[string]string{"fail": "it is full", "exec": "nothing that the part", strings.Repeat("x", 1000): "nothing that the part"} {
		if err := Ask(context.Background(), path, verb, 1, &n); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%.10s: %v", verb, err)
		}
	}
	if err := Ask(context.Background(), path+"no", "double", 1, &n); err == nil {
		t.Error("nobody listens there")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Ask(ctx, path, "double", 1, &n); err == nil {
		t.Error("after the end of its context")
	}
}

// A file that is asked for is open here; one that was not asked for is not taken
// for an answer.
func TestAskFile(t *testing.T) {
	path := serve(t, map[string]Verb{
		"file": func(context.Context, json.RawMessage) (any, error) {
			name := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
				return nil, err
			}
			return os.Open(name)
		},
		"none": func(context.Context, json.RawMessage) (any, error) { return struct{}{}, nil },
		"fail": func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("no such file") },
	})
	f, err := AskFile(context.Background(), path, "file", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	for verb, want := range map[string]string{"none": "sent no file", "fail": "no such file"} {
		if f, err := AskFile(context.Background(), path, verb, 1); f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", verb, f, err)
		}
	}
	if err := Ask(context.Background(), path, "file", 1, &struct{}{}); err != nil {
		t.Error("a file nobody asked for:", err)
	}
}

// TestHostile: whoever speaks otherwise is given nothing, and holds up nobody.
func TestHostile(t *testing.T) {
	path := serve(t, map[string]Verb{"one": func(context.Context, json.RawMessage) (any, error) { return 1, nil }})
	for _, text := range []string{"", "\n", "{", "[]", `{"verb": 7}`, strings.Repeat("[", 1<<16), `{"verb":"` + strings.Repeat("a", 1<<17)} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, text) // what does not fit is not read
		conn.(*net.UnixConn).CloseWrite()
		b, _ := io.ReadAll(conn)
		if strings.Contains(string(b), `"answer"`) {
			t.Errorf("%.20q is answered %s", text, b)
		}
		conn.Close()
	}
	for range 2 * connections { // who says nothing and goes
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	var n int
	if err := Ask(context.Background(), path, "one", nil, &n); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

// TestIdleAreEvicted: clients that connect and ask nothing keep out none that asks. When
// all places are taken, the connection that was idle longest gets an error and is closed.
func TestIdleAreEvicted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	evicted := 0 // the goroutine of Serve counts
	ended := make(chan error, 1)
	go func() {
		ended <- Server{UID: 64653, Evicted: func() { evicted++ }, Verbs: map[string]Verb{"one": func(context.Context, json.RawMessage) (any, error) { return 1, nil }}}.Serve(l)
	}()
	var idle []net.Conn
	for range connections + 3 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		idle = append(idle, conn)
	}
	var n int
	if err := Ask(t.Context(), path, "one", nil, &n); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	for i, conn := range idle[:4] {
		var r reply
		if err := json.NewDecoder(conn).Decode(&r); err != nil || !strings.Contains(r.Error, "nothing came for too long") {
			t.Errorf("idle connection %d: %q, %v", i, r.Error, err)
		}
	}
	conn := idle[len(idle)-1] // still has its place
	if _, err := io.WriteString(conn, `{"verb":"one"}`); err != nil {
		t.Error(err)
	}
	var r reply
	if err := json.NewDecoder(conn).Decode(&r); err != nil || string(r.Answer) != "1" {
		t.Errorf("%s %q, %v", r.Answer, r.Error, err)
	}
	l.Close()
	if err := <-ended; err != nil || evicted != 4 {
		t.Errorf("%d evictions are counted, %v", evicted, err)
	}
}

// TestCallsWait: with all calls under way, further ones wait for their turn, and an
// asker whose context ends waits no longer.
func TestCallsWait(t *testing.T) {
	begun, end := make(chan struct{}, calls), make(chan struct{})
	path := serve(t, map[string]Verb{
		"hold": func(context.Context, json.RawMessage) (any, error) { begun <- struct{}{}; <-end; return 1, nil },
		"one":  func(context.Context, json.RawMessage) (any, error) { return 1, nil },
	})
	answers := make(chan error, calls+1)
	ask := func(ctx context.Context, verb string) { answers <- Ask(ctx, path, verb, nil, new(int)) }
	for range calls {
		go ask(t.Context(), "hold")
	}
	for range calls {
		<-begun
	}
	ctx, cancel := context.WithCancel(t.Context())
	go ask(ctx, "one")
	cancel()
	if err := <-answers; err == nil {
		t.Error("answered beyond the calls that there may be")
	}
	go ask(t.Context(), "one")
	close(end)
	for range calls + 1 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}
