package scp

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/sbi"
	"github.com/weft-sdn/weft/wefttest"
)

// network is hosts and an NRF whose packets for the NRF's address come in at a
// front without a host. Host n is at port n of switch 1.
type network struct {
	t      testing.TB
	v6     bool
	vlan   uint16
	cfg    *Config
	nrf    *fakeNRF
	wire   *wire
	proxy  *proxy
	front  *front
	live   atomic.Pointer[proxy] // the same, for hosts
	feed   func(events ...any)
	counts map[string]*tally
	stop   func()
	lax    bool // answers may be anything

	mu    sync.Mutex // guards hosts
	hosts map[int]*netHost
}

type netHost struct {
	n     int
	addr  netip.Addr
	stack *netstack
}

// tally is a figure that tests read.
type tally struct {
	mu sync.Mutex
	n  float64
}

func (c *tally) Add(n float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
}

func (c *tally) sum() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// count returns the figure of a label.
func (n *network) count(label string) *tally {
	if n.counts[label] == nil {
		n.counts[label] = &tally{}
	}
	return n.counts[label]
}

// admitAll has room for all connections.
func admitAll(netip.Addr, func()) (room, bool) { return room{func() {}, func(bool) {}}, true }

func (n *network) addr(host int) netip.Addr {
	if n.v6 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(host)})
	}
	return netip.AddrFrom4([4]byte{10, 0, 0, byte(host)})
}

func macOf(host int) flow.MAC { return flow.MAC{2, 0, 0, 0, 0, byte(host)} }

func newNetwork(t testing.TB, v6 bool, change ...func(*Config)) *network {
	n := &network{
		t: t, v6: v6, cfg: DefaultConfig(), nrf: &fakeNRF{book: map[string][]byte{}, validity: 30}, counts: map[string]*tally{}, hosts: map[int]*netHost{},
	}
	n.cfg.NRF = "http://" + netip.AddrPortFrom(n.addr(1), 7777).String()
	n.cfg.Vips = []netip.Prefix{netip.MustParsePrefix("10.0.9.0/24"), netip.MustParsePrefix("fd00::9:0/112")}
	for _, f := range change {
		f(n.cfg)
	}
	n.vlan = uint16(n.cfg.VLAN)
	if n.vlan != 0 {
		n.vlan |= flow.VLANPresent
	}
	if err := n.cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: n.nrf, Protocols: new(http.Protocols)}
	web.Protocols.SetUnencryptedHTTP2(true)
	l := n.host(1).stack.listen(100)
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() {
		n.stop()
		web.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, h := range n.hosts {
			if h.stack != nil {
				h.stack.close()
			}
		}
	})
	n.start()
	return n
}

// start starts a front, which knows where the NRF is.
func (n *network) start() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, buckets := wefttest.NewStore(), [3]object.Bucket{}
	for i, name := range []string{"scp.policies", "scp.instances", "scp.endpoints"} {
		var err error
		if buckets[i], err = store.Bucket(ctx, name); err != nil {
			n.t.Fatal(err)
		}
	}
	n.proxy = newProxy(n.cfg, buckets[0], log)
	n.proxy.count = newCounts(func(string, string, ...string) Counter { return silent{} })
	w, err := newWire(n.cfg, newWireCounts(func(_, _ string, labels ...string) Counter {
		return n.count(labels[1])
	}), &flow.Tagging{}, newPlaces(n.cfg.Connections, &n.proxy.reached, n.count("full"), n.count("closed"), log))
	if err != nil {
		n.t.Fatal(err)
	}
	n.wire, n.proxy.wire = w, w
	n.feed = wefttest.Network(reads, n.proxy.networkChanged)
	w.send, w.locate, w.relays = n.deliver, n.proxy.station, n.proxy.relays
	n.live.Store(n.proxy)
	client, err := newNRF(n.cfg, w)
	if err != nil {
		n.t.Fatal(err)
	}
	r := newReconciler(n.proxy, &fakeBalancer{vips: map[string]*api.Vip{}})
	f := newFront(n.proxy, client, w, w, r.await, log)
	keys, err := store.Bucket(ctx, "scp.keys")
	if err != nil {
		n.t.Fatal(err)
	}
	f.notifier = newNotifier(ctx, f, keys)
	n.front, f.ready = f, testwait.Limit
	n.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}})
	n.learn(1, n.addr(1))
	var work sync.WaitGroup
	last, end := context.WithCancel(context.Background())
	work.Go(func() { r.run(last) })
	work.Go(func() {
		defer end()
		f.serve(ctx)
	})
	work.Go(func() { w.run(last) })
	work.Go(func() { n.proxy.shelve(ctx, object.NewPersister(buckets[1]), object.NewPersister(buckets[2])) })
	n.stop = func() {
		cancel()
		work.Wait()
		client.transport.CloseIdleConnections()
	}
	n.eventually("the front serves", w.open.Load)
}

func (n *network) eventually(what string, is func() bool) {
	n.t.Helper()
	testwait.Until(n.t, what, is)
}

// host returns a host; what it sends comes in by its port.
func (n *network) host(i int) *netHost {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.hosts[i]; h != nil {
		return h
	}
	at := n.addr(i)
	if i == 1 {
		at = n.addr(201) // its stack accepts what is for others
	}
	s, err := newNetstack(at, admitAll, silent{})
	if err != nil {
		n.t.Fatal(err)
	}
	h := &netHost{n: i, addr: n.addr(i)}
	n.hosts[i] = h
	n.run(h, s)
	return h
}

// run has a host send what its stack sends.
func (n *network) run(h *netHost, s *netstack) {
	h.stack = s
	go func() {
		for {
			ip, to := s.output(context.Background(), true)
			if ip == nil {
				return
			}
			e := packet.Ether{Src: macOf(h.n), Dst: macOf(1), VLAN: n.vlan}
			if own := n.live.Load().wire; h.n == 1 || to == own.own {
				e.Dst = own.mac
			}
			kind := flow.EthTypeIPv4
			if to.Is6() {
				kind = flow.EthTypeIPv6
			}
			n.send(h.n, packet.Pad(append(packet.AppendEthernet(nil, e, kind), ip...)))
		}
	}()
}

// learn has the switch tell that addresses are at a host's port.
func (n *network) learn(host int, addrs ...netip.Addr) {
	h := &api.Host{Mac: macOf(host).String(), Vlan: uint32(n.cfg.VLAN), At: &api.Location{Dpid: flow.DPID(1).String(), Port: uint32(host)}}
	for _, a := range addrs {
		if a.Is4() {
			h.Ipv4 = append(h.Ipv4, a.String())
		} else {
			h.Ipv6 = append(h.Ipv6, a.String())
		}
	}
	n.feed(&api.HostChanged{Change: "learnt", Host: h})
}

// send has a frame come in by a host's port.
func (n *network) send(host int, frame []byte) flow.Verdict {
	in, d := wefttest.NewPacketIn(1, flow.Port(host), frame), &flow.Decision{}
	in.Time = time.Now().UnixNano()
	v := n.live.Load().packet(in, d)
	if !d.Empty() {
		n.deliver(context.Background(), d)
	}
	if v == flow.Next {
		n.pass(host, frame)
	}
	return v
}

// pass hands a frame that the controller lets go on to the host that it is for: an
// unwanted segment is reset by its stack, as that of the NRF's host does.
func (n *network) pass(from int, frame []byte) {
	var k flow.Key
	_, ip, ok := packet.Payload(frame)
	if !packet.Parse(frame, &k) || !ok || k.IPProto != flow.IPProtoTCP {
		return
	}
	_, dst, _ := addresses(&k)
	n.mu.Lock()
	var to *netHost
	for _, h := range n.hosts {
		if h.addr == dst && h.n != from {
			to = h
		}
	}
	n.mu.Unlock()
	if to != nil && to.stack != nil {
		to.stack.input(protocolOf(dst), ip)
	}
}

// deliver hands packet-outs to the hosts at their ports.
func (n *network) deliver(_ context.Context, d *flow.Decision) {
	for _, out := range d.Outs {
		port := int(out.Actions[len(out.Actions)-1].Arg)
		var k flow.Key
		n.mu.Lock()
		h := n.hosts[port]
		n.mu.Unlock()
		if !packet.Parse(out.Data, &k) || h == nil || k.EthDst != macOf(port) || k.VLAN != n.vlan || port != 1 && k.EthSrc != macOf(1) && k.EthSrc != n.live.Load().wire.mac {
			if !n.lax {
				n.t.Errorf("a frame for port %d: %+v", port, k)
			}
			continue
		}
		if _, ip, ok := packet.Payload(out.Data); ok && k.IPProto == flow.IPProtoTCP && h.stack != nil {
			h.stack.input(protocolOf(h.addr), ip)
		}
	}
}

// web returns a client of a host for the NRF, with a connection of its own.
func (h *netHost) web(nrf netip.AddrPort) *http.Transport {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return h.stack.dial(ctx, nrf) }, Protocols: new(http.Protocols),
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

// do sends a request of a host to the NRF.
func (n *network) do(host int, method, path, body string) (status int, text string, err error) {
	t := n.host(host).web(n.wire.nrf)
	defer t.CloseIdleConnections()
	return ask(t, method, n.cfg.NRF+path, body)
}

func ask(t *http.Transport, method, url, body string, header ...string) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all), err
}

// register has a host register an instance of its own.
func (n *network) register(host int, of sbi.NFType) {
	n.t.Helper()
	a := n.addr(host)
	text := profile(host, of, func(p *sbi.NFProfile) {
		e := &p.NFServices[0].IPEndPoints[0]
		if p.IPv4Addresses, e.IPv4Address = nil, ""; a.Is6() {
			p.IPv6Addresses, e.IPv6Address = []string{a.String()}, a.String()
		} else {
			p.IPv4Addresses, e.IPv4Address = []string{a.String()}, a.String()
		}
	})
	if status, body, err := n.do(host, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(host), text); status != 201 {
		n.t.Fatalf("host %d registers: %d %s %v", host, status, body, err)
	}
}

const discoverUDM = "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF"

// synFrame returns the first segment of a connection to the NRF.
func (n *network) synFrame(host int, from netip.AddrPort, flags uint8) []byte {
	return packet.AppendTCP(nil, packet.Ether{Src: macOf(host), Dst: macOf(1), VLAN: n.vlan}, packet.IP{Src: from.Addr(), Dst: n.addr(1)},
		packet.TCPFields{SrcPort: from.Port(), DstPort: 7777, Seq: rand.Uint32(), Flags: flags}, nil)
}
