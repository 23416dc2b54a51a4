package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
)

// terminal is a client that is attached to a console.
type terminal struct {
	t  *testing.T
	ws *websocket.Conn
}

func (c *client) attach(name string) *terminal {
	c.t.Helper()
	ws, _, err := websocket.Dial(c.t.Context(), "ws://lab/v1/lab/consoles/"+name, &websocket.DialOptions{HTTPClient: &c.Client})
	if err != nil {
		c.t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	c.t.Cleanup(func() { ws.CloseNow() })
	return &terminal{c.t, ws}
}

func (x *terminal) send(kind websocket.MessageType, text string) {
	x.t.Helper()
	if err := x.ws.Write(x.t.Context(), kind, []byte(text)); err != nil {
		x.t.Fatal(err)
	}
}

// until reads until a text has come, and returns all that has.
func (x *terminal) until(text string) string {
	x.t.Helper()
	var all bytes.Buffer
	ctx, cancel := context.WithTimeout(x.t.Context(), testwait.Limit)
	defer cancel()
	tail := func(n int) string { return string(all.Bytes()[max(0, all.Len()-n):]) }
	for last := 1 << 10; !strings.Contains(tail(last), text); {
		_, b, err := x.ws.Read(ctx)
		if err != nil {
			x.t.Fatalf("%v before %q; the terminal said %q", err, text, tail(200))
		}
		all.Write(b)
		last = len(b) + len(text)
	}
	return all.String()
}

// closed reads until the service closes, and returns its reason.
func (x *terminal) closed() websocket.CloseError {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), testwait.Limit)
	defer cancel()
	for {
		if _, _, err := x.ws.Read(ctx); err != nil {
			var e websocket.CloseError
			if !errors.As(err, &e) {
				x.t.Fatal(err)
			}
			return e
		}
	}
}

// TestConsole: a console goes on without clients, and gives each all that it has
// said; it is in its node, and ends with it.
func TestConsole(t *testing.T) {
	const name = "serve-console"
	c := serve(t, AllowUp, AllowDown, AllowExec)
	c.up(name)
	at := "/v1/lab/labs/" + name + "/consoles"
	one := &api.LabConsole{}
	c.call("POST", at, &api.OpenLabConsoleRequest{Node: "h1", Command: []string{"/bin/sh"}, Rows: 30, Cols: 100}, one)
	a := c.attach(one.GetConsole())
	a.send(websocket.MessageBinary, "ip -o -4 addr show eth0; stty size; echo at $WEFT_LAB_HOST\n")
	if said := a.until("at h1"); !strings.Contains(said, "10.0.0.1/24") || !strings.Contains(said, "30 100") {
		t.Errorf("said %q", said)
	}
	a.send(websocket.MessageText, `{"rows":11,"cols":77}`)
	a.send(websocket.MessageBinary, "stty size; (sleep 1; echo la''ter) &\n")
	a.until("11 77")
	a.ws.CloseNow()
	time.Sleep(1500 * time.Millisecond)
	b, d := c.attach(one.GetConsole()), c.attach(one.GetConsole()) // two at once
	for _, x := range []*terminal{b, d} {
		if said := x.until("later"); !strings.Contains(said, "10.0.0.1/24") {
			t.Errorf("after attaching again: %q", said)
		}
	}
	b.send(websocket.MessageBinary, "echo to bo''th\n")
	d.until("to both")
	list := &api.ListLabConsolesResponse{}
	c.call("GET", at, nil, list)
	if l := list.GetConsoles(); len(l) != 1 || l[0].GetAttached() < 2 || l[0].GetRows() != 11 {
		t.Errorf("consoles: %v", list)
	}
	b.send(websocket.MessageText, "rows")
	if e := b.closed(); e.Code != websocket.StatusPolicyViolation {
		t.Errorf("garbage: %v", e)
	}
	d.send(websocket.MessageBinary, "exit 3\n")
	if e := d.closed(); e.Code != websocket.StatusNormalClosure || !strings.Contains(e.Reason, "exit status 3") {
		t.Errorf("ended: %v", e)
	}
	c.call("POST", at, &api.OpenLabConsoleRequest{Node: "s1"}, one)
	e := c.attach(one.GetConsole())
	e.until("s1 (lab " + name + ")# ")
	e.send(websocket.MessageBinary, "ovs-vsctl list-ports $WEFT_LAB_BRIDGE; ovs-ofctl -O OpenFlow13 show $WEFT_LAB_BRIDGE | grep -c eth; echo do''ne\n")
	if said := e.until("\ndone"); !strings.Contains(said, "s1-eth1\r\n") {
		t.Errorf("at a switch: %q", said)
	}
	// What goes on in the background ends with the command, and with the console.
	for _, last := range []string{"exit", "cat"} {
		c.call("POST", at, &api.OpenLabConsoleRequest{Node: "h2", Command: []string{"/bin/sh"}}, one)
		h := c.attach(one.GetConsole())
		h.send(websocket.MessageBinary, "sleep 600 & nohup sleep 601 & nohup setsid sleep 602 & echo star''ted; "+last+"\n")
		h.until("started")
		if last == "cat" {
			c.call("DELETE", "/v1/lab/consoles/"+one.GetConsole(), nil, &api.CloseLabConsoleResponse{})
		}
		h.closed()
		l, err := lab.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if use, err := l.Usage(); err != nil || use[l.HostNetns("h2")].Processes > 0 {
			t.Errorf("after %s: %v, %v", last, use, err)
		}
	}
	if err := lab.Down(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	e.closed()
	c.refused(404, "no such lab", "POST", at, &api.OpenLabConsoleRequest{Node: "h1"})
}

// TestConsoleBounds: a client that does not read costs others nothing, and there are
// only so many consoles.
func TestConsoleBounds(t *testing.T) {
	const name = "serve-bounds"
	c := serve(t, AllowUp, AllowExec)
	c.up(name)
	at := "/v1/lab/labs/" + name + "/consoles"
	one := &api.LabConsole{}
	c.call("POST", at, &api.OpenLabConsoleRequest{Node: "h1", Command: []string{"/bin/sh"}}, one)
	c.attach(one.GetConsole()) // and never reads
	b := c.attach(one.GetConsole())
	b.send(websocket.MessageBinary, "stty -echo -onlcr; seq 1 600000; echo do''ne\n") // 4 MB
	b.until("\ndone")
	again := c.attach(one.GetConsole()).until("\ndone")
	if strings.Contains(again, "left out") || len(again) > scrollBack || len(again) < scrollBack/2 || !strings.Contains(again, "\n599999\n600000\n") {
		t.Errorf("%d octets of scroll-back, the end of which is %q", len(again), again[max(0, len(again)-40):])
	}
	for range maxConsoles - 1 {
		c.call("POST", at, &api.OpenLabConsoleRequest{Node: "h2", Command: []string{"sleep", "600"}}, one)
	}
	c.refused(429, "64 consoles", "POST", at, &api.OpenLabConsoleRequest{Node: "h2", Command: []string{"sleep", "600"}})
	gone := &api.CloseLabConsoleResponse{}
	c.call("DELETE", "/v1/lab/consoles/"+one.GetConsole(), nil, gone)
	if !gone.GetClosed() {
		t.Error("it was not there")
	}
	c.refused(404, "no console", "GET", "/v1/lab/consoles/"+one.GetConsole(), nil)
	c.call("POST", at, &api.OpenLabConsoleRequest{Node: "h2", Command: []string{"true"}}, one)
	c.attach(one.GetConsole()).closed()
	c.refused(400, "nosuch", "POST", at, &api.OpenLabConsoleRequest{Node: "h2", Command: []string{"nosuch"}})
}

// TestRing: what a terminal says is given in order, whatever its parts.
func TestRing(t *testing.T) {
	c := &console{news: make(chan struct{})}
	var all strings.Builder
	at := int64(0)
	var read strings.Builder
	for i := range 60_000 {
		line := fmt.Sprintf("line %d of the terminal, which is long enough\n", i)
		all.WriteString(line)
		c.write([]byte(line))
		if i%10_000 == 0 {
			for {
				b, next, _, ok := c.since(at)
				if !ok {
					t.Fatal("too late")
				}
				if len(b) == 0 {
					break
				}
				read.Write(b)
				at = next
			}
		}
	}
	if !strings.HasPrefix(all.String(), read.String()) || read.Len() == 0 {
		t.Error("what was read is not what was written")
	}
	var last strings.Builder
	for from := c.first(); from < c.total; {
		b, next, _, _ := c.since(from)
		last.Write(b)
		from = next
	}
	if last.Len() != scrollBack || !strings.HasSuffix(all.String(), last.String()) {
		t.Errorf("%d octets are remembered", last.Len())
	}
	if _, _, _, ok := c.since(0); ok {
		t.Error("the beginning is not forgotten")
	}
}
