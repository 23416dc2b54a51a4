package shm

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/mux"
	"github.com/weft-sdn/weft/transport/transporttest"
)

// roleVariable makes the test binary another process: "serve ADDRESS" answers
// calls, those named wait never; "break ADDRESS" sends a part of a message. Both
// print a line when they are at it.
const roleVariable = "WEFT_SHM_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(strings.Fields(role)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func play(role []string) error {
	switch role[0] {
	case "serve":
		if _, err := New(nil).Listen(role[1], echo{}); err != nil {
			return err
		}
	case "break":
		k := greet(role[1])
		var size [prefix]byte
		binary.LittleEndian.PutUint32(size[:], 1<<20)
		k.out.put(append(size[:], make([]byte, 1000)...))
		k.publish()
	}
	fmt.Println("ready")
	select {}
}

// process starts another process in a role.
func process(t *testing.T, role, address string) *os.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role+" "+address)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%s: %q, %v", role, line, err)
	}
	return cmd.Process
}

// echo answers calls, those named wait when they are given up.
type echo struct{}

func (echo) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	if method == "wait" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return req, nil
}

// greet connects to a listener as Dial does and returns the bare link.
func greet(address string) *link {
	conn, err := net.Dial("unix", strings.TrimPrefix(address, "unix:"))
	if err != nil {
		panic(err)
	}
	k, err := introduce(conn)
	if err != nil {
		panic(err)
	}
	return k
}

func wantUnavailable(t *testing.T, err error) {
	t.Helper()
	var e *transport.Error
	if !errors.As(err, &e) || e.Code != transport.Unavailable {
		t.Errorf("error %v, want Unavailable", err)
	}
}

func files(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestSealed: nobody can make the memory shorter, or the peer unable to write.
func TestSealed(t *testing.T) {
	fd, err := newMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, size := range []int64{0, memorySize - 1, memorySize + 1} {
		if err := unix.Ftruncate(fd, size); !errors.Is(err, unix.EPERM) {
			t.Errorf("cut to %d: %v", size, err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); !errors.Is(err, unix.EPERM) {
		t.Errorf("sealed against writing: %v", err)
	}
}

// hostileFile makes a file that a hostile listener sends.
func hostileFile(size int64, seal int) func() (int, error) {
	return func() (int, error) {
		fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err == nil {
			err = unix.Ftruncate(fd, size)
		}
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seal)
		}
		return fd, err
	}
}

// TestHostileListener: memory that could end this process, or none, is refused,
// and nothing of it is left.
func TestHostileListener(t *testing.T) {
	for name, c := range map[string]struct {
		file func() (int, error)
		want string
	}{
		"not sealed":   {hostileFile(memorySize, 0), "not sealed"},
		"shrinks":      {hostileFile(memorySize, unix.F_SEAL_GROW), "not sealed"},
		"short":        {hostileFile(memorySize-4096, seals), "octets of memory"},
		"empty":        {hostileFile(0, seals), "octets of memory"},
		"not to write": {hostileFile(memorySize, seals|unix.F_SEAL_WRITE), "mmap"},
		"a file": {func() (int, error) {
			return unix.Open(filepath.Join(t.TempDir(), "f"), unix.O_RDWR|unix.O_CREAT, 0o600)
		}, "is no memory"},
		"nothing":              {nil, "shares no memory"},
		"silent":               {func() (int, error) { return -1, nil }, context.DeadlineExceeded.Error()},
		"no doorbell":          {hostileFile(memorySize, seals), "shares no memory"},
		"a doorbell of memory": {hostileFile(memorySize, seals), "file type does not support deadline"},
		"more than two":        {hostileFile(memorySize, 0), "not sealed"},
	} {
		t.Run(name, func(t *testing.T) {
			address := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", address)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			before := files(t)
			answered := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(answered)
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = io.ReadFull(conn, make([]byte, len(greeting)))
				var rights []byte
				if c.file != nil {
					fd, err := c.file()
					if err != nil {
						t.Error(err)
					}
					if fd < 0 {
						<-done
						return
					}
					defer unix.Close(fd)
					here, there, err := newDoorbells()
					if err != nil {
						t.Error(err)
						return
					}
					defer here.close()
					defer unix.Close(there)
					switch rights = unix.UnixRights(fd, there); name {
					case "no doorbell":
						rights = unix.UnixRights(fd)
					case "a doorbell of memory":
						rights = unix.UnixRights(fd, fd)
					case "more than two":
						rights = unix.UnixRights(fd, there, fd, fd)
					}
				}
				_, _, _ = conn.(*net.UnixConn).WriteMsgUnix([]byte("HTTP/1.1 403 Forbidden"), rights, nil)
				<-done
			}()
			ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
			if name == "silent" {
				ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
			}
			defer cancel()
			conn, err := New(nil).Dial(ctx, "unix:"+address)
			if err == nil {
				conn.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			close(done)
			<-answered
			if n := files(t); n > before {
				t.Errorf("%d files are open, %d before", n, before)
			}
		})
	}
}

// TestHostileDialer: whoever breaks the protocol loses its own connection, and
// nobody else does.
func TestHostileDialer(t *testing.T) {
	tr := New(nil)
	l, err := tr.Listen("unix:"+filepath.Join(t.TempDir(), "s"), echo{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	good, err := tr.Dial(t.Context(), l.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	wake := func(k *link) { k.out.waiting.Store(0); k.bell.ring() }
	length := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	for name, harm := range map[string]func(k *link){
		"positions that are not possible": func(k *link) { k.out.written.Store(ringSize + 1); wake(k) },
		"positions that go back":          func(k *link) { k.out.written.Store(1<<32 - 1); wake(k) },
		"a message of nothing":            func(k *link) { k.out.put(length(0)); k.publish() },
		"a message too large":             func(k *link) { k.out.put(length(mux.MaxMessage + 1)); k.publish() },
		"a message of the largest number": func(k *link) { k.out.put(length(1<<32 - 1)); k.publish() },
		"no frame":                        func(k *link) { k.out.put(append(length(3), 0xff, 0xff, 0xff)); k.publish() },
		"a reader beyond the writer": func(k *link) {
			k.in.read.Store(1 << 31)
			b := mux.NewBuffer(0)
			b.B = (&mux.Frame{Kind: mux.Ping}).Append(b.B)
			_ = k.Write(b) // the answer needs room
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := greet(l.Address())
			defer k.Close()
			harm(k)
			select {
			case <-k.ended:
			case <-time.After(testwait.Limit):
				t.Error("the connection goes on")
			}
			if resp, err := good.Call(t.Context(), "m", []byte("x")); err != nil || string(resp) != "x" {
				t.Errorf("another connection: %q, %v", resp, err)
			}
		})
	}
	conn, err := net.Dial("unix", strings.TrimPrefix(l.Address(), "unix:"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a stranger's connection: %v", err)
	}
}

// TestBells: a peer that rings without end harms nobody but itself, and cannot
// make this process wait.
func TestBells(t *testing.T) {
	tr := New(nil)
	l, err := tr.Listen("unix:"+filepath.Join(t.TempDir(), "s"), echo{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	good, err := tr.Dial(t.Context(), l.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	k := greet(l.Address())
	defer k.Close()
	for range 10_000 {
		k.bell.ring()
	}
	if resp, err := good.Call(t.Context(), "m", []byte("x")); err != nil || string(resp) != "x" {
		t.Errorf("%q, %v", resp, err)
	}
}

// TestKilled: calls fail when the process that answers them is killed, and
// nothing of a process that is killed within a message stays.
func TestKilled(t *testing.T) {
	address := "unix:" + filepath.Join(t.TempDir(), "s")
	server := process(t, "serve", address)
	c, err := New(nil).Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Call(t.Context(), "m", make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { _, err := c.Call(context.Background(), "wait", nil); failed <- err }()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failed:
		wantUnavailable(t, err)
	case <-time.After(testwait.Limit):
		t.Fatal("a call to a process that is dead goes on")
	}

	wantMapped(t, 0)

	own := "unix:" + filepath.Join(t.TempDir(), "t")
	l, err := New(nil).Listen(own, echo{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := process(t, "break", own)
	wantMapped(t, 1)
	if err := client.Kill(); err != nil {
		t.Fatal(err)
	}
	wantMapped(t, 0)
}

// wantMapped waits until so many connections' memory is mapped here.
func wantMapped(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(time.Millisecond) {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		n := strings.Count(string(maps), "memfd:weft-shm")
		if n == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the memory of %d connections is mapped, want %d", n, want)
		}
	}
}

// TestSilent: a process that lives and does nothing is given up, and one that
// has left without a word, too.
func TestSilent(t *testing.T) {
	address := "unix:" + filepath.Join(t.TempDir(), "s")
	server := process(t, "serve", address)
	tr := New(nil)
	tr.Heartbeat = transporttest.Beat
	c, err := tr.Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Call(t.Context(), "m", nil); err != nil {
		t.Fatal(err)
	}
	if err := server.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	_, err = c.Call(ctx, "m", make([]byte, 4<<20)) // more than there is room for
	wantUnavailable(t, err)
}

// FuzzLink reads from a ring in which anything may stand.
func FuzzLink(f *testing.F) {
	f.Add(uint32(0), uint32(9), []byte("\x05\x00\x00\x00hello"))
	f.Add(uint32(0), uint32(ringSize), []byte("\xff\xff\xff\xff"))
	f.Add(uint32(1<<32-4), uint32(4), []byte("\x03\x00\x00\x00abc"))
	f.Add(uint32(7), uint32(1<<31), []byte{})
	memory := make([]byte, memorySize)
	ended := make(chan struct{})
	close(ended)
	here, there, err := newDoorbells()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { here.close(); unix.Close(there) })
	f.Fuzz(func(t *testing.T, own, written uint32, data []byte) {
		l := &link{side: dialing, bell: here, readable: make(chan struct{}, 1), ended: ended, closed: make(chan struct{})}
		l.in, _ = rings(memory, dialing)
		l.in.own = own
		l.in.put(data[:min(len(data), ringSize)])
		l.in.own = own
		l.in.written.Store(written)
		for read := 0; ; {
			b, err := l.Read()
			if err != nil {
				return
			}
			if read += prefix + len(b.B); len(b.B) == 0 || read > int(written-own) {
				t.Fatalf("a message of %d octets; %d read of %d", len(b.B), read, written-own)
			}
			b.Release()
		}
	})
}
