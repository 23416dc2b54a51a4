package balancer

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// heardConn keeps what is read from a connection.
type heardConn struct {
	net.Conn
	heard *[]byte
}

func (c heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	*c.heard = append(*c.heard, p[:n]...)
	return n, err
}

// answers returns what a server sends for two requests whose answers have a header, by HTTP/2
// or HTTP/1.1, in all and for the second.
func answers(t *testing.T, http2 bool, name string, values ...string) (all, second []byte) {
	t.Helper()
	n := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()[name] = []string{values[n%len(values)]}
		n++
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(!http2)
	s.Config.Protocols.SetUnencryptedHTTP2(http2)
	s.Start()
	defer s.Close()
	heard, mark := []byte{}, 0
	x := &http.Transport{Protocols: s.Config.Protocols, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return heardConn{c, &heard}, err
	}}
	for range 2 {
		mark = len(heard)
		resp, err := x.RoundTrip(httptest.NewRequest("GET", s.URL, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.Copy(io.Discard, resp.Body); err != nil || resp.Body.Close() != nil {
			t.Fatal(err)
		}
	}
	x.CloseIdleConnections()
	return heard, heard[mark:]
}

// TestIndicates: the binding indications of TS 29.500 are found in what servers send, compressed
// or not, and by their values where only the name is in HPACK's table.
func TestIndicates(t *testing.T) {
	const id = "; nfinst=54804518-4191-46b3-955c-ac631f953ed8"
	for _, level := range []string{"bl=nf-instance", "bl=nf-set", "bl=nfservice-instance", "bl=nfservice-set"} {
		for _, http2 := range []bool{true, false} {
			if all, second := answers(t, http2, "3gpp-Sbi-Binding", level+id, level+id+"; scope=callback"); !indicates(all) || !indicates(second) {
				t.Errorf("%s, HTTP/2 %v: not seen in %q, %q", level, http2, all, second)
			}
			if all, _ := answers(t, http2, "3gpp-Sbi-Lci", level[:5]+id); indicates(all) {
				t.Errorf("HTTP/2 %v: an indication in %q", http2, all)
			}
		}
	}
}

// segments returns what a member sends on a connection, cut at some places.
func segments(client uint16, seq uint32, text []byte, cuts ...int) (all []packet.TCP) {
	from := 0
	for _, to := range append(cuts, len(text)) {
		frame := packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(1), Src: macOfHost(5)}, packet.IP{Src: v4(5), Dst: v4(1)},
			packet.TCPFields{SrcPort: 8080, DstPort: client, Seq: seq + uint32(from), Flags: packet.TCPAck}, text[from:to])
		t, _ := packet.ParseTCP(frame)
		all, from = append(all, t), to
	}
	return all
}

// seen reports whether segments have an indication, in all and in the last.
func (s *streams) seen(all ...packet.TCP) bool {
	is := false
	for _, t := range all {
		is = s.indicate(t) || is
	}
	return is
}

// TestIndicatesInPieces: a binding indication is found in what servers send wherever it is cut,
// also where segments of other connections come between, or segments come again.
func TestIndicatesInPieces(t *testing.T) {
	const value = "bl=nf-instance; nfinst=54804518-4191-46b3-955c-ac631f953ed8"
	other := segments(4001, 7, []byte("HTTP/1.1 200 OK\r\n\r\n"))[0]
	for _, http2 := range []bool{true, false} {
		all, second := answers(t, http2, "3gpp-Sbi-Binding", value, value+"; scope=callback")
		for _, text := range [][]byte{all, second} {
			each := make([]int, len(text)-1)
			for i := 1; i < len(text); i++ {
				each[i-1] = i
				two := segments(4000, -uint32(i), text, i) // the number wraps where it is cut
				for what, list := range map[string][]packet.TCP{
					"in two":                     two,
					"another connection between": {two[0], other, two[1]},
					"the first again":            {two[0], two[0], two[1]},
					"in three":                   segments(4000, 1, text, i, min(i+3, len(text))),
					"with an acknowledgement":    {two[0], segments(4000, 0, nil)[0], two[1]},
				} {
					if !new(streams).seen(list...) {
						t.Errorf("HTTP/2 %v, %s, cut at %d of %q: not seen", http2, what, i, text)
					}
				}
			}
			if s := new(streams); !s.seen(segments(4000, 1, text, each...)...) {
				t.Errorf("HTTP/2 %v: octet by octet: not seen", http2)
			}
		}
		none, _ := answers(t, http2, "3gpp-Sbi-Lci", value[:5])
		for i := range none {
			if new(streams).seen(segments(4000, 1, none, i)...) {
				t.Errorf("HTTP/2 %v, cut at %d: an indication in %q", http2, i, none)
			}
		}
	}
}

// TestIndicatesApart: the halves of an indication that do not follow each other are none, and
// of a pair four connections are kept. No packet allocates.
func TestIndicatesApart(t *testing.T) {
	text := []byte("3gpp-sbi-binding")
	half := segments(4000, 1000, text, 8)
	gap := segments(4000, 1001, text, 8)[1]
	syn := segments(4000, 1007, nil)[0]
	syn[13] |= packet.TCPSyn
	for what, list := range map[string][]packet.TCP{
		"the other way round": {half[1], half[0]},
		"with a gap":          {half[0], gap},
		"of two connections":  {half[0], segments(4001, 1000, text, 8)[1]},
		"a connection anew":   {half[0], syn, half[1]},
	} {
		if new(streams).seen(list...) {
			t.Errorf("%s: seen", what)
		}
	}
	others := func(n int) (all []packet.TCP) {
		all = []packet.TCP{half[0]}
		for i := range n {
			all = append(all, segments(uint16(4001+i), 1, text, 8)[0])
		}
		return append(all, half[1])
	}
	if most := len(streams{}); !new(streams).seen(others(most-1)...) || new(streams).seen(others(most)...) {
		t.Errorf("not the last %d connections are kept", most)
	}
	s, list := new(streams), others(6)
	if n := testing.AllocsPerRun(10, func() { s.seen(list...) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// copied has a member's packet come to the controller as a copy, by the entry back.
func (g *rig) copied(member, client int, payload string) {
	g.t.Helper()
	at := placeOf(member)
	in := wefttest.NewPacketIn(at.Switch, at.Port, packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(client), Src: macOfHost(member)}, packet.IP{Src: v4(member), Dst: v4(client)},
		packet.TCPFields{SrcPort: 8080, DstPort: 4000, Flags: packet.TCPAck}, []byte(payload)))
	in.Time, in.Cookie, in.Table = g.now, flow.NewCookie(flow.OwnerBalancer, uint8(paired)|genWatch, 1), flow.TableTranslate
	d := &flow.Decision{}
	if v := g.b.packet(in, d); v != flow.Done || !d.Empty() {
		g.t.Errorf("a copy: %v %v", v, d.Ops)
	}
}

const bindingHeader = "HTTP/1.1 201 Created\r\n3gpp-Sbi-Binding: bl=nf-instance; nfinst=54804518-4191-46b3-955c-ac631f953ed8\r\n\r\n"

// copies reports whether an entry sends packets to the controller, and goes on.
func copies(e *flow.Entry) bool {
	return e.Goto != 0 && len(e.Apply) > 1 && flow.Port(e.Apply[0].Arg) == flow.PortController && e.Apply[0].Kind == flow.ActionOutput
}

// TestPairIndicated: a pair with a binding indication stays with its member over idle times, a
// restart of the balancer included; others are balanced anew, and their answers are looked at
// a few times in each idle time.
func TestPairIndicated(t *testing.T) {
	for _, bound := range []bool{true, false} {
		g := newRig(t)
		v := pairs(5, 6, 7)
		v.Again = "indicated"
		g.set(v)
		_, in, d := g.send(1, g.frame(1, 4000))
		first := int(in.Key.IPv4Dst[3])
		if back := mods(d, 2, flow.Add); len(back) != 1 || !copies(&back[0]) {
			t.Fatalf("the entry back: %+v", back)
		}
		g.posted()
		g.copied(first, 1, "HTTP/1.1 200 OK\r\n\r\n")
		if bound {
			g.copied(first, 1, bindingHeader)
		} else {
			for range watchCopies {
				g.copied(first, 1, "")
			}
		}
		back := mods(g.posted(), 2, flow.Add)
		if len(back) != 1 || copies(&back[0]) {
			t.Fatalf("%v: the entry back afterwards: %+v", bound, back)
		}
		g.now += int64(2 * time.Minute)
		g.b.tidy(g.now)
		if back := mods(g.posted(), 2, flow.Add); bound && len(back) != 0 || !bound && (len(back) != 1 || !copies(&back[0])) {
			t.Errorf("%v: in the next idle time: %+v", bound, back)
		}
		g.consistent()
		for i := range 3 {
			g.end(g.by(1, 0), "idle_timeout")
			g.now += int64(time.Hour)
			g.b.tidy(g.now)
			if got := g.open(1, 4001+uint16(i)); (got == first) != bound {
				t.Errorf("indicated %v: after idling %d, before %d", bound, got, first)
			}
			if c := g.by(1, 0); c.watch.bound != bound || c.watch.on == bound {
				t.Errorf("indicated %v: after idling %+v", bound, c.watch)
			}
			if first = int(g.by(1, 0).to.Addr().As4()[3]); i == 1 {
				entries := g.entries()
				g.start(g.store)
				for sw, flows := range entries {
					g.observed(sw, flows)
				}
				if d := g.posted(); !d.Empty() {
					t.Errorf("indicated %v: after a restart: %v", bound, d.Ops)
				}
			}
		}
		v.Again = "balance"
		g.set(v)
		g.posted()
		g.b.tidy(g.now)
		if back := mods(g.posted(), 2, flow.Add); !bound && (len(back) != 1 || copies(&back[0])) {
			t.Errorf("no longer wanted: %+v", back)
		}
	}
}

// TestPairIndicatedAway: a pair with a binding indication goes to another member when its own
// does not serve.
func TestPairIndicatedAway(t *testing.T) {
	g := newRig(t)
	v := pairs(5, 6)
	v.Again = "indicated"
	g.set(v)
	first := g.open(1, 4000)
	g.copied(first, 1, bindingHeader)
	g.end(g.by(1, 0), "idle_timeout")
	for i := range v.Pool {
		if v.Pool[i].Address == v4(first).String() {
			v.Pool[i].State = "draining"
		}
	}
	g.set(v)
	if got := g.open(1, 4001); got == first || got == 0 {
		t.Errorf("drained: to %d", got)
	}
	if p, err := readVip(&api.Vip{Name: "x", Address: "10.0.0.9", Protocol: "tcp", Port: 80, Again: "indicated"}, DefaultConfig()); err == nil {
		t.Errorf("without pairs: %+v", p)
	}
}
