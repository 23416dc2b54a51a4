package balancer

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// spoken is octets that one end of a connection has sent.
type spoken struct {
	client bool
	text   []byte
}

// tapped keeps what goes over a connection, in its order.
type tapped struct {
	net.Conn
	mu  *sync.Mutex
	all *[]spoken
}

func (c tapped) note(client bool, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.all = append(*c.all, spoken{client, append([]byte{}, p...)})
}

func (c tapped) Write(p []byte) (int, error) {
	c.note(true, p)
	return c.Conn.Write(p)
}

func (c tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.note(false, p[:n])
	return n, err
}

// dialogueOf returns what a client and a server of net/http say to each other, by HTTP/2, for
// a request for each status; one of 0 is answered by a reset.
func dialogueOf(t *testing.T, statuses ...int) (all []spoken) {
	t.Helper()
	n := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		status := statuses[n]
		if n++; status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Trailer", "X-End")
		w.WriteHeader(status)
		_, _ = w.Write(make([]byte, 40_000)) // several frames, each of several segments
		w.Header().Set("X-End", "yes")
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	mu := &sync.Mutex{}
	x := &http.Transport{Protocols: s.Config.Protocols, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return tapped{c, mu, &all}, err
	}}
	for range statuses {
		resp, err := x.RoundTrip(httptest.NewRequest("POST", s.URL, io.LimitReader(zeros{}, 20_000)))
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			err = resp.Body.Close()
		}
		if statuses[n-1] != 0 && err != nil {
			t.Fatal(err)
		}
	}
	x.CloseIdleConnections()
	mu.Lock()
	defer mu.Unlock()
	return all
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// played has a sample take what two ends say, in segments of a size, a millisecond after each
// other; lost drops some of them.
func played(all []spoken, size int, lost func(n int) bool) *sampled {
	s, seq, now, n := &sampled{copies: true}, map[bool]uint32{true: 0xffffff00, false: 7}, int64(1), 0
	for _, x := range all {
		for text := x.text; len(text) > 0; n++ {
			part := text[:min(size, len(text))]
			text, now = text[len(part):], now+int64(time.Millisecond)
			f := packet.TCPFields{SrcPort: 8080, DstPort: 4000, Seq: seq[x.client], Flags: packet.TCPAck}
			if x.client {
				f.SrcPort, f.DstPort = f.DstPort, f.SrcPort
			}
			seq[x.client] += uint32(len(part))
			frame := packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(1), Src: macOfHost(5)}, packet.IP{Src: v4(5), Dst: v4(1)}, f, part)
			t, _ := packet.ParseTCP(frame)
			if lost == nil || !lost(n) {
				s.take(t, x.client, now)
				s.take(t, x.client, now) // sent again
			}
		}
	}
	return s
}

// TestSampledRequests: requests, their answers and times are read of what net/http's client and
// server send, in segments of any size.
func TestSampledRequests(t *testing.T) {
	all := dialogueOf(t, 200, 404, 503, 503, 201, 0, 200)
	for _, size := range []int{1460, 9000, 536} {
		s := played(all, size, nil)
		if s.requests != 7 || s.errors != 3 || s.congested != 1 || s.unread != 1 { // of the second 503 HPACK has left an index
			t.Errorf("segments of %d: %d requests, %d errors, %d congested, %d unread", size, s.requests, s.errors, s.congested, s.unread)
		}
		if mean := s.took / time.Duration(s.requests); mean < time.Millisecond || mean > 200*time.Millisecond {
			t.Errorf("segments of %d: %v", size, mean)
		}
		if x := s.on[0]; len(x.asked) != 0 {
			t.Errorf("segments of %d: under way: %v", size, x.asked)
		}
	}
}

// TestSampledRequestsLost: where segments are not seen, no request is counted that was not there,
// and those that come later are. Of an answer that was not seen, the trailers count.
func TestSampledRequestsLost(t *testing.T) {
	statuses := make([]int, 40)
	for i := range statuses {
		statuses[i] = 200
	}
	all := dialogueOf(t, statuses...)
	for _, every := range []int{3, 7, 50} {
		s := played(all, 1460, func(n int) bool { return n%every == every-1 })
		if s.requests > 40 || s.errors > 0 || every > 7 && s.requests < 20 {
			t.Errorf("one of %d is lost: %d requests, %d errors, %d unread", every, s.requests, s.errors, s.unread)
		}
	}
	for cut := range 60 { // a sample that begins within a frame
		some := append([]spoken{{all[0].client, all[0].text[min(cut, len(all[0].text)):]}}, all[1:]...)
		if s := played(some, 1460, nil); s.requests < 38 || s.requests > 40 || s.errors > 0 {
			t.Errorf("from octet %d: %d requests, %d errors", cut, s.requests, s.errors)
		}
	}
}

// FuzzSampledRequests: what is not HTTP/2 is not counted as answers that have a status that no
// answer has, and takes no memory.
func FuzzSampledRequests(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88"), uint16(9))
	f.Fuzz(func(t *testing.T, text []byte, size uint16) {
		s := played([]spoken{{true, text}, {false, text}}, 1+int(size), nil)
		if s.errors > s.requests || s.congested > s.requests || s.unread > s.requests || len(s.on[0].asked) > sampleAsked {
			t.Errorf("%+v", s)
		}
	})
}

// copyOfConn has a packet of a conn come to the controller as a copy, by one of its entries.
func (g *rig) copyOfConn(c *conn, client bool, text []byte) {
	g.t.Helper()
	src, dst, port := 5, 1, flow.Port(5)
	f := packet.TCPFields{SrcPort: 8080, DstPort: 4000, Seq: 1, Flags: packet.TCPAck}
	ip := packet.IP{Src: c.to.Addr(), Dst: v4(1)}
	sw := c.egress
	if client {
		src, dst, port, f.SrcPort, f.DstPort, ip, sw = 1, 5, 1, 4000, 80, packet.IP{Src: v4(1), Dst: v4(100)}, c.ingress.Switch
	}
	in := wefttest.NewPacketIn(sw, port, packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(dst), Src: macOfHost(src)}, ip, f, text))
	in.Time, in.Cookie, in.Table = g.now, c.cookie(genWatch), flow.TableTranslate
	d := &flow.Decision{}
	if v := g.b.packet(in, d); v != flow.Done || !d.Empty() {
		g.t.Errorf("a copy: %v %v", v, d.Ops)
	}
}

var (
	requestFrame = []byte("\x00\x00\x01\x01\x05\x00\x00\x00\x01\x83")
	answerFrame  = []byte("\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88")
)

// TestSamples: the entries of pairs and of connections copy packets until a sample has as many as
// the VIP says or is over, and do so again; a restart ends them, too.
func TestSamples(t *testing.T) {
	for _, per := range []string{"pair", "connection"} {
		g := newRig(t)
		v := pairs(5)
		v.Sample = 4
		if v.Per = per; per == "connection" {
			v.Again = ""
		}
		g.set(v)
		g.send(1, g.frame(1, 4000))
		c := g.by(1, 4000)
		if per == "pair" {
			c = g.by(1, 0)
		}
		if c == nil || !c.sampling() {
			t.Fatalf("%s: no sample: %+v", per, c)
		}
		entries := func(d *flow.Decision, copied bool) {
			t.Helper()
			there, back := mods(d, 1, flow.Add), mods(d, 2, flow.Add)
			if len(there) == 0 || len(back) == 0 || copies(&there[0]) != copied || copies(&back[len(back)-1]) != copied {
				t.Errorf("%s: copied %v: %+v, %+v", per, copied, there, back)
			}
		}
		for i := range 2 {
			g.copyOfConn(c, true, requestFrame)
			g.now += int64(3 * time.Millisecond)
			g.copyOfConn(c, false, answerFrame)
			if i == 0 {
				g.copyOfConn(c, true, nil)
				g.copyOfConn(c, false, nil)
				entries(g.posted(), false)
			}
			g.now += 2 * sampleTime
			g.b.tidy(g.now)
			entries(g.posted(), i == 0)
			g.consistent()
		}
		list, err := g.b.ListPairs(t.Context(), &api.ListPairsRequest{}, func(context.Context, flow.DPID) ([]*api.FlowEntry, error) { return nil, nil })
		if err != nil || len(list.Pairs) != 1 || list.Pairs[0].Sampled.GetRequests() != 2 || list.Pairs[0].Sampled.GetSeconds() != 0.006 {
			t.Errorf("%s: %v %v", per, list, err)
		}
		g.now += 2 * sampleTime
		g.b.tidy(g.now)
		entries(g.posted(), true)
		seen := g.entries()
		g.start(g.store)
		for sw, flows := range seen {
			g.observed(sw, flows)
		}
		if d := g.posted(); !d.Empty() {
			t.Errorf("%s: after a restart: %v", per, d.Ops)
		}
		g.consistent()
		g.now += 2 * sampleTime
		g.b.tidy(g.now)
		entries(g.posted(), false)
		if v.Sample = 0; g.b.tracker.samples != 0 {
			t.Errorf("%s: %d samples", per, g.b.tracker.samples)
		}
		g.set(v)
		g.posted()
		g.now += 2 * sampleTime
		if g.b.tidy(g.now); !g.posted().Empty() {
			t.Errorf("%s: samples though the VIP has none", per)
		}
	}
}

// TestSamplesDrained: connections of a member that is drained or retires are not copied, and
// their packets go on by way of the controller.
func TestSamplesDrained(t *testing.T) {
	for _, state := range []string{"draining", "retiring"} {
		for _, per := range []string{"pair", "connection"} {
			g := newRig(t)
			v := pairs(5, 6)
			v.Sample, v.Per = 4, per
			if per == "connection" {
				v.Again = ""
			}
			g.set(v)
			first := g.open(1, 4000)
			for i := range v.Pool {
				if v.Pool[i].Address == v4(first).String() {
					v.Pool[i].State = state
				}
			}
			g.set(v)
			g.posted()
			_, in, _ := g.send(1, packet.AppendTCP(nil, packet.Ether{Dst: g.b.index.Load().all()[0].mac, Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(100)},
				packet.TCPFields{SrcPort: 4000, DstPort: 80, Flags: packet.TCPAck}, nil))
			if got := int(in.Key.IPv4Dst[3]); got != first {
				t.Errorf("%s, %s: goes to %d, was with %d", state, per, got, first)
			}
			g.consistent()
			for i := range 30 {
				g.now += int64(2 * time.Second)
				g.b.tidy(g.now)
				g.posted()
				if g.consistent(); g.b.tracker.samples > 2 {
					t.Fatalf("%s, %s, turn %d: %d samples", state, per, i, g.b.tracker.samples)
				}
			}
		}
	}
}

// TestSamplesBounded: so many are sampled at once, and all in turn.
func TestSamplesBounded(t *testing.T) {
	g := newRig(t)
	v := pairs(5, 6, 7, 8)
	v.Per, v.Again, v.Sample = "connection", "", 4
	g.set(v)
	const all = 3*sampleAtOnce + 5
	for i := range all {
		g.open(1+i%4, uint16(4000+i))
	}
	had := map[*conn]bool{}
	for range 5 {
		n := 0
		for _, c := range g.b.tracker.by {
			if c.sampling() {
				had[c] = true
				n++
			}
		}
		if n != g.b.tracker.samples || n > sampleAtOnce {
			t.Fatalf("%d samples, counted %d", n, g.b.tracker.samples)
		}
		g.now += sampleTime
		g.b.tidy(g.now)
		g.posted()
	}
	if len(had) != all {
		t.Errorf("%d of %d had a sample", len(had), all)
	}
	for _, bad := range []*api.Vip{{Sample: 1001, Protocol: "tcp", Port: 80}, {Sample: 10, Protocol: "udp", Port: 80}, {Sample: 10, Protocol: "any"}} {
		bad.Name, bad.Address = "x", "10.0.0.9"
		if p, err := readVip(bad, DefaultConfig()); err == nil {
			t.Errorf("%v: %+v", bad, p)
		}
	}
}
