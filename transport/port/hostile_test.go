package port_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/mux"
	"github.com/weft-sdn/weft/transport/port"
	"github.com/weft-sdn/weft/transport/rest"
)

// TestHostile attacks a port and checks after each attack that others are
// served as before and that no memory is lost.
func TestHostile(t *testing.T) {
	p := listen(t, port.Config{Handler: echo{}, MaxConns: 100})
	var conns []transport.Conn
	for _, tr := range transports(nil) {
		c, err := tr.Dial(t.Context(), p.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	huge := append([]byte(preface), 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1) // a frame of 16 MiB
	for name, octets := range map[string][]byte{
		"random":                random(10000),
		"little":                []byte("P"),
		"HTTP/2 and random":     append([]byte(preface), random(10000)...),
		"a huge frame":          append(huge, random(10000)...),
		"HTTP and random":       append([]byte("POST /weft/call/m HTTP/1.1\r\n"), random(100000)...),
		"a huge body announced": []byte("POST /weft/call/m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nabc"),
		"a body that ends":      []byte("POST /weft/call/m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\nabc"),
		"a huge chunk":          []byte("POST /weft/call/m HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\nabc"),
		"endless headers":       append([]byte("GET / HTTP/1.1\r\nX: "), bytes.Repeat([]byte("x"), 1<<20)...),
	} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for cut := range 20 {
				wg.Go(func() {
					conn, err := net.Dial("tcp", p.Address())
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = conn.Write(octets[:len(octets)-len(octets)*cut/40]) // may be refused on the way
					_ = conn.(*net.TCPConn).CloseWrite()
					_ = conn.SetDeadline(time.Now().Add(testwait.Limit))
					if _, err := io.Copy(io.Discard, conn); err != nil && !isReset(err) {
						t.Errorf("not ended: %v", err)
					}
					_ = conn.Close() // it has ended
				})
			}
			wg.Wait()
			wantServed(t, conns)
		})
	}
}

func isReset(err error) bool {
	e, ok := err.(net.Error)
	return ok && !e.Timeout()
}

// wantServed checks that connections work.
func wantServed(t *testing.T, conns []transport.Conn) {
	t.Helper()
	for _, c := range conns {
		ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
		if resp, err := c.Call(ctx, "m", []byte("still there")); err != nil || string(resp) != "still there" {
			t.Errorf("%q, %v", resp, err)
		}
		cancel()
	}
}

// frame encodes one.
func frame(f mux.Frame) []byte { return f.Append(nil) }

// TestHostileFrames speaks the protocol up to its frames and breaks it there.
func TestHostileFrames(t *testing.T) {
	p := listen(t, port.Config{Handler: echo{}})
	var conns []transport.Conn
	for _, tr := range transports(nil) {
		c, err := tr.Dial(t.Context(), p.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	half := mux.Frame{Kind: mux.Call, More: true, ID: 7, Total: transport.MaxMessage, Name: []byte("m"), Body: []byte("x")}
	var parts []byte
	for i := range 2048 {
		half := half
		half.ID = uint64(i)
		parts = half.Append(parts)
	}
	for name, w := range map[string]struct {
		messages [][]byte
		survives bool
	}{
		"empty":             {[][]byte{{}}, false},
		"unknown kind":      {[][]byte{{99}}, false},
		"cut short":         {[][]byte{frame(half)[:5]}, false},
		"one too many":      {[][]byte{append(frame(half), 0)}, false},
		"huge number":       {[][]byte{append([]byte{byte(mux.Call)}, bytes.Repeat([]byte{0xff}, 20)...)}, false},
		"huge body":         {[][]byte{binary.AppendUvarint([]byte{byte(mux.Data), 1}, 1<<40)}, false},
		"too much":          {[][]byte{frame(half), frame(mux.Frame{Kind: mux.Data, ID: 7, Body: []byte("short")})}, false},
		"twice":             {[][]byte{frame(half), frame(half)}, false},
		"a result":          {[][]byte{frame(mux.Frame{Kind: mux.Result, ID: 1})}, false},
		"an event of old":   {[][]byte{{2, 1, 0, 1, 's', 0}}, false},
		"many halves":       {[][]byte{parts}, true}, // refused, one by one
		"data of nothing":   {[][]byte{frame(mux.Frame{Kind: mux.Data, ID: 9, Body: []byte("x")})}, true},
		"cancel of nothing": {[][]byte{frame(mux.Frame{Kind: mux.Cancel, ID: 9})}, true},
		"a long message":    {[][]byte{bytes.Repeat(frame(mux.Frame{Kind: mux.Pong}), mux.MaxMessage+1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := memory()
			ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
			defer cancel()
			ws, _, err := websocket.Dial(ctx, "ws://"+p.Address()+"/weft/link", &websocket.DialOptions{Subprotocols: []string{"weft.v1"}})
			if err != nil {
				t.Fatal(err)
			}
			defer ws.CloseNow()
			ws.SetReadLimit(mux.MaxMessage)
			for _, m := range w.messages {
				if err := ws.Write(ctx, websocket.MessageBinary, m); err != nil {
					break // ended already
				}
			}
			_ = ws.Write(ctx, websocket.MessageBinary, frame(mux.Frame{Kind: mux.Ping})) // reading tells
			err = nil
			for alive := false; err == nil && !alive; {
				var b []byte
				_, b, err = ws.Read(ctx)
				alive = len(b) > 0 && b[len(b)-1] == byte(mux.Pong)
			}
			if survives := err == nil; survives != w.survives {
				t.Errorf("survives %t, want %t (%v)", survives, w.survives, err)
			}
			if ctx.Err() != nil {
				t.Error("the connection neither ends nor answers")
			}
			if grown := memory() - before; grown > 64<<20 {
				t.Errorf("memory has grown by %d MiB", grown>>20)
			}
			wantServed(t, conns)
		})
	}
}

// memory returns how much is in use.
func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestConnectionLimit checks that a port is not exhausted by those who
// connect and say nothing.
func TestConnectionLimit(t *testing.T) {
	p := listen(t, port.Config{Handler: echo{}, MaxConns: 5})
	var open []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	time.Sleep(20 * time.Millisecond) // until they are accepted
	_, err := rest.New(nil).Dial(t.Context(), p.Address())
	if err == nil {
		t.Error("there is room for a sixth connection")
	}
	for _, c := range open {
		_ = c.Close() // makes room
	}
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(time.Millisecond) {
		resp, err := http.Get(fmt.Sprintf("http://%s%s", p.Address(), rest.PingPath))
		if err == nil {
			_ = resp.Body.Close() // empty
			break
		}
		if time.Now().After(end) {
			t.Fatalf("there is no room again: %v", err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
