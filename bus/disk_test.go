package bus_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/internal/testwait"
)

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// small returns a directory on a disk of 4 MiB of its own.
func small(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a disk that is full needs root, to mount a small one; run the tests as root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatalf("a disk that is full needs a small one to be mounted: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill takes all that is free in the directory, until the function that it
// returns is called.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	return func() { os.Remove(name) }
}

// TestFullDisk checks that a write on a full disk fails soon and says why,
// that what was there is read on, and that the store goes on by itself.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := small(t)
	log := &logged{}
	s := opened(t, bus.Config{Directory: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	b, err := s.Bucket(ctx, "flowrules.flows")
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Bucket(ctx, "hosts.hosts")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []weft.Bucket{b, other} {
		if _, err := b.Put(ctx, "before", []byte("kept")); err != nil {
			t.Fatal(err)
		}
	}
	told := make(chan string, 1000)
	go func() { told <- fmt.Sprint(b.Watch(ctx, func(key string, _ []byte, _ uint64) { told <- key })) }()
	free := fill(t, dir)
	for i := 0; err == nil && i < 100; i++ { // the file that is open may have a little room
		_, err = b.Put(ctx, fmt.Sprint("k", i), make([]byte, 4096))
	}
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), "make room") {
		t.Fatalf("a write on a full disk: %v, want what is wrong and what to do", err)
	}
	if value, _, err := b.Get(ctx, "before"); err != nil || string(value) != "kept" {
		t.Errorf("read on a full disk: %q, %v", value, err)
	}
	if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "no space left on device") {
		t.Errorf("the log does not say what is wrong:\n%s", text)
	}
	free()
	for err = fmt.Errorf("not tried"); err != nil && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		_, err = b.Put(ctx, "after", []byte("again"))
	}
	if err != nil {
		t.Fatalf("the store does not go on when there is room: %v\n%s", err, log)
	}
	for _, b := range []weft.Bucket{b, other} {
		if _, err := b.Put(ctx, "after", []byte("again")); err != nil {
			t.Error(err)
		}
		if value, _, err := b.Get(ctx, "before"); err != nil || string(value) != "kept" {
			t.Errorf("what was kept before the disk was full: %q, %v", value, err)
		}
	}
	var keys []string
	for key := ""; key != "after"; {
		select {
		case key = <-told:
			keys = append(keys, key)
		case <-ctx.Done():
			t.Fatalf("who watches is not told of what is written when there is room again, but of %q\n%s", keys, log)
		}
	}
	if text := log.String(); !strings.Contains(text, "can write again") {
		t.Errorf("the log does not say that it goes on:\n%s", text)
	}
}

// TestStateLargerThanWhatIsFree checks that a store starts, and writes, whose
// state is larger than the space that is left.
func TestStateLargerThanWhatIsFree(t *testing.T) {
	t.Parallel()
	dir := small(t)
	put := func(key string, octets int) {
		t.Helper()
		s, err := bus.Open(t.Context(), bus.Config{Directory: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b, err := s.Bucket(t.Context(), "flowrules.flows")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(t.Context(), key, make([]byte, octets)); err != nil {
			t.Fatal(err)
		}
	}
	put("large", 2<<20+512<<10) // 1.5 MiB are left, of which the server would use three quarters
	put("little", 4096)
}

// TestStartOnFullDisk checks that a store does not start on a full disk, says
// why and what helps, and starts with all that it has held once there is room.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	d := damaged{t, small(t)}
	before := d.prepare()
	free := fill(t, d.dir)
	s, err := bus.Open(t.Context(), bus.Config{Directory: d.dir})
	if err == nil {
		s.Close()
		t.Fatal("the store starts on a full disk")
	}
	if !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), "make room there") {
		t.Errorf("the error does not say why, or what helps: %v", err)
	}
	free()
	d.check(before, "")
}
