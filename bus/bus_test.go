package bus_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/bus"
)

// child is the variable by which a copy of the test binary knows that it is to
// write into the directory that it names until it is killed.
const child = "WEFT_BUS_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(child); dir != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(dir))
		os.Exit(1)
	}
	if url := os.Getenv(victim); url != "" {
		fmt.Fprintln(os.Stderr, listenUntilKilled(url))
		os.Exit(1)
	}
	if text := os.Getenv(foreign); text != "" {
		fmt.Fprintln(os.Stderr, serve(text))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeUntilKilled puts growing numbers and prints each that is confirmed.
func writeUntilKilled(dir string) error {
	s, err := bus.Open(context.Background(), bus.Config{Directory: dir})
	if err != nil {
		return err
	}
	b, err := s.Bucket(context.Background(), "flowrules.flows")
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		revision, err := b.Put(context.Background(), fmt.Sprintf("k%d", i%50), fmt.Append(nil, i))
		if err != nil {
			return err
		}
		fmt.Println(i, revision)
	}
}

func open(t *testing.T, dir string) *bus.Store {
	t.Helper()
	return opened(t, bus.Config{Directory: dir})
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	suite(t, open(t, t.TempDir()))
}

// part is a store within a store, so that the suite needs only one server.
type part struct {
	*bus.Store
	prefix string
}

func (p part) Bucket(ctx context.Context, name string) (b weft.Bucket, err error) {
	return p.Store.Bucket(ctx, p.prefix+name)
}

func TestBucketNames(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{"", ".", "a.", "a-b", "A.b", "a b.c", "a..b"} {
		if _, err := s.Bucket(t.Context(), name); err == nil {
			t.Errorf("bucket %q is opened", name)
		}
	}
}

// TestKill kills a process that writes, again and again, and finds everything
// that was confirmed.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), child+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		want := map[string][2]int{} // value and revision by key
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var i, revision int
			if _, err := fmt.Sscan(lines.Text(), &i, &revision); err != nil {
				t.Fatal(err)
			}
			want[fmt.Sprintf("k%d", i%50)] = [2]int{i, revision}
			if n == 100+50*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("the child ended with %v", err)
		}
		s, err := bus.Open(t.Context(), bus.Config{Directory: dir})
		if err != nil {
			t.Fatalf("open after a kill: %v", err)
		}
		b, err := s.Bucket(t.Context(), "flowrules.flows")
		if err != nil {
			t.Fatal(err)
		}
		if len(want) != 50 {
			t.Fatalf("the child confirmed %d keys, want 50", len(want))
		}
		for key, w := range want {
			// One more put may have come to disk than was confirmed.
			value, revision, err := b.Get(t.Context(), key)
			var got int
			if _, scanErr := fmt.Sscan(string(value), &got); scanErr != nil || err != nil {
				t.Fatalf("%s: %q, %v", key, value, err)
			}
			if got != w[0] && got != w[0]+50 || revision < uint64(w[1]) {
				t.Errorf("round %d: %s is %d of revision %d; confirmed were %v", round, key, got, revision, w)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	var last uint64
	for i := range 3 {
		s, err := bus.Open(t.Context(), bus.Config{Directory: dir})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Bucket(t.Context(), "flowrules.flows")
		if err != nil {
			t.Fatal(err)
		}
		value, revision, err := b.Get(t.Context(), "a")
		if err != nil || revision != last || i > 0 && string(value) != fmt.Sprint(i-1) {
			t.Errorf("after %d restarts: %q of revision %d, %v; want revision %d", i, value, revision, err, last)
		}
		if last, err = b.Update(t.Context(), "a", fmt.Append(nil, i), last); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Put(t.Context(), "a", nil); err == nil {
			t.Error("a closed store takes a value")
		}
	}
}

func TestServerLogsAtDebug(t *testing.T) {
	var log bytes.Buffer
	s, err := bus.Open(t.Context(), bus.Config{
		Directory: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for _, line := range lines {
		if !strings.Contains(line, "level=DEBUG") || !strings.Contains(line, "from=nats") {
			t.Errorf("unexpected line: %s", line)
		}
	}
	if len(lines) < 5 {
		t.Errorf("only %d lines of the server's", len(lines))
	}
}

func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	_, err := bus.Open(t.Context(), bus.Config{Directory: dir})
	want := fmt.Sprintf("data directory %s is in use by process %d; stop that process, or give this one a directory of its own", dir, os.Getpid())
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below"), "/proc/weft"} {
		_, err := bus.Open(t.Context(), bus.Config{Directory: dir})
		if err == nil || !strings.Contains(err.Error(), "data directory "+dir+" cannot be used") || !strings.Contains(err.Error(), "choose another") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestUnreachableCluster(t *testing.T) {
	_, err := bus.Open(t.Context(), bus.Config{URL: "nats://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "connect to the store at nats://127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

// A server that hangs up is tried a few times more: it may only be starting.
func TestServerThatHangsUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var tried atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tried.Add(1)
			c.Close()
		}
	}()
	if _, err := bus.Open(t.Context(), bus.Config{URL: "nats://" + l.Addr().String()}); err == nil || !strings.Contains(err.Error(), "check that NATS runs there") {
		t.Errorf("got %v", err)
	}
	if n := tried.Load(); n != 4 {
		t.Errorf("tried %d times, want 4", n)
	}
}

func TestConfigMistakes(t *testing.T) {
	for _, c := range []struct {
		config bus.Config
		want   string
	}{
		{bus.Config{}, "neither"},
		{bus.Config{Directory: "d", URL: "u"}, "both"},
		{bus.Config{Directory: "d", Replicas: 3}, "Replicas"},
		{bus.Config{URL: "u", Replicas: 7}, "7 replicas"},
		{bus.Config{URL: "u", Replicas: 2}, "2 replicas"},
		{bus.Config{Directory: "d", Token: "t"}, "Token"},
		{bus.Config{URL: "u", Listen: "127.0.0.1:0"}, "Listen"},
		{bus.Config{URL: "u", Token: "t", Credentials: "c"}, "Credentials"},
	} {
		if _, err := bus.Open(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.config, err, c.want)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	s, err := bus.Open(b.Context(), bus.Config{Directory: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	bucket, err := s.Bucket(b.Context(), "flowrules.flows")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := bucket.Put(b.Context(), "k", make([]byte, 200)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := bus.Open(b.Context(), bus.Config{Directory: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestReadBesideWrites reads a bucket while each of its keys is written again and again:
// no reading lacks one.
func TestReadBesideWrites(t *testing.T) {
	b, err := open(t, t.TempDir()).Bucket(t.Context(), "flowrules.flows")
	if err != nil {
		t.Fatal(err)
	}
	const keys = 10
	for i := range keys {
		if _, err := b.Put(t.Context(), fmt.Sprint(i), []byte("first")); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := w; ctx.Err() == nil; i += 3 {
				if _, err := b.Put(ctx, fmt.Sprint(i%keys), fmt.Append(nil, i)); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 500 {
		read := 0
		if err := b.All(t.Context(), func(string, []byte, uint64) error { read++; return nil }); err != nil {
			t.Fatal(err)
		}
		if read != keys {
			t.Fatalf("reading %d: %d of %d keys", i, read, keys)
		}
	}
	stop()
	writers.Wait()
}
