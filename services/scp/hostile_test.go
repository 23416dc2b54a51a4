package scp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/sbi"
)

// What is malformed is refused with a reason, reaches no NRF, and leaves the front
// as it was.
func TestMalformed(t *testing.T) {
	g := newRig(t)
	bomb := strings.Repeat("[", 100_000)
	for what, c := range map[string]struct {
		method, path, body string
		want               int
	}{
		"no types":             {"GET", "/nnrf-disc/v1/nf-instances", "", 400},
		"no requester":         {"GET", "/nnrf-disc/v1/nf-instances?target-nf-type=UDM", "", 400},
		"a slice of no sense":  {"GET", "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&snssais=" + url.QueryEscape(bomb[:5000]), "", 400},
		"unknown parameters":   {"GET", "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&what=ever&what=else", "", 200},
		"a bomb":               {"PUT", "/nnrf-nfm/v1/nf-instances/" + id(1), bomb, 413},
		"a long one":           {"PUT", "/nnrf-nfm/v1/nf-instances/" + id(1), `"` + strings.Repeat("x", 1<<20) + `"`, 413},
		"no JSON":              {"PUT", "/nnrf-nfm/v1/nf-instances/" + id(1), "{", 400},
		"another type":         {"PUT", "/nnrf-nfm/v1/nf-instances/" + id(1), `{"nfInstanceId": 7}`, 400},
		"another id":           {"PUT", "/nnrf-nfm/v1/nf-instances/" + id(1), profile(2, sbi.UDM), 400},
		"a second spelling":    {"PUT", "/nnrf-nfm/v1/./nf-instances/" + id(1), profile(1, sbi.UDM), 400},
		"a third":              {"PUT", "/nnrf-nfm/v1/nf%2Dinstances/" + id(1), profile(1, sbi.UDM), 400},
		"a slash too many":     {"PUT", "/nnrf-nfm/v1/nf-instances//" + id(1), profile(1, sbi.UDM), 400},
		"nobody's service":     {"GET", "/", "", 404},
		"empty nfServiceList":  {"PUT", "/nnrf-nfm/v1/nf-instances/" + id(1), profile(1, sbi.UDM, func(p *sbi.NFProfile) { p.NFServices, p.NFServiceList = nil, map[string]sbi.NFService{} }), 201},
		"no services, no list": {"PUT", "/nnrf-nfm/v1/nf-instances/" + id(2), profile(2, sbi.UDM, func(p *sbi.NFProfile) { p.NFServices, p.IPv4Addresses = nil, nil; p.FQDN = "udm.example.org" }), 201},
	} {
		n := 1
		if c.method == "GET" {
			n = 3
		}
		if strings.HasSuffix(c.path, id(2)) {
			n = 2
		}
		if resp, body := g.do(n, c.method, c.path, c.body); resp.StatusCode != c.want {
			t.Errorf("%s: %s: %.200s", what, resp.Status, body)
		}
	}
	if status, _, _ := g.discover(3, sbi.AMF, sbi.UDM, ""); status != 200 {
		t.Errorf("afterwards: status %d", status)
	}
}

// Cut frames, endless headers, and connections that say nothing cost their own
// connection and nobody else's; no client has all connections.
func TestCutAndSilent(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Connections = 64 })
	g.register(5, sbi.UDM)
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	before := runtime.NumGoroutine()
	var silent []net.Conn
	for _, text := range []string{
		"", "PRI", preface, preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\xff\xff\x01\x04\x00\x00\x00\x01" + "\x82\x86",
		preface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01", "GET / HTTP/1.1\r\n", "\x16\x03\x01",
	} {
		c := g.open(9)
		_, _ = io.WriteString(c, text)
		silent = append(silent, c)
	}
	long := g.open(9)
	_, _ = io.WriteString(long, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	answer := make([]byte, 100)
	_ = long.SetReadDeadline(time.Now().Add(testwait.Limit))
	if n, err := long.Read(answer); err == nil && !strings.Contains(string(answer[:n]), "431") {
		t.Errorf("headers of 1 MiB: %s", answer[:n])
	}
	long.Close()
	for range 64 {
		silent = append(silent, g.open(9))
	}
	if status, _, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); status != 200 {
		t.Errorf("beside them: status %d", status)
	}
	for _, c := range silent {
		c.Close()
	}
	g.eventually("what served them ends", func() bool { return runtime.NumGoroutine() <= before+8 })
}

// However many addresses hosts at some ports of the network have, and however many idle
// connections from each: others are served, and keep theirs.
func TestIdleMakeRoom(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Connections = 32 })
	g.register(5, sbi.UDM)
	g.host(5, 5)
	g.host(1, 1)
	for port := 10; port < 18; port++ {
		for x := range 4 {
			g.host(port, 10*port+x)
		}
	}
	old := g.open(1)
	ask := func(c net.Conn) {
		t.Helper()
		_ = c.SetDeadline(time.Now().Add(testwait.Limit))
		fmt.Fprintf(c, "GET /nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF HTTP/1.1\r\nHost: nrf\r\n\r\n")
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	ask(old)
	for port := 10; port < 18; port++ {
		for x := range 4 {
			for range 8 {
				c := g.open(10*port + x)
				defer c.Close()
				fmt.Fprint(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
			}
		}
	}
	if status, _, _ := g.discover(2, sbi.AMF, sbi.UDM, ""); status != 200 {
		t.Errorf("a newcomer: status %d", status)
	}
	ask(old)
	g.eventually("those that were closed have left", func() bool { return g.front.at.(*hostSockets).places.all.Len() <= 32 })
	if l := g.proxy.reached.List(time.Now().UnixNano()); len(l) == 0 || l[0].Key != "scp.connections" || l[0].Who == "" {
		t.Errorf("health learns %v", l)
	}
}

// A table keeps the newest values of each port, and those of a port that has few
// although others have many.
func TestTableIsShared(t *testing.T) {
	x := newTable[int, int](8)
	few, many := flow.Location{Switch: 1, Port: 1}, flow.Location{Switch: 1, Port: 2}
	v, fresh := x.use(1000, few)
	if *v = 7; !fresh {
		t.Error("known before")
	}
	for port := range flow.Port(4) {
		for i := range 100 {
			x.use(int(port)*100+i, flow.Location{Switch: 2, Port: port})
		}
	}
	for i := 500; i < 600; i++ {
		x.use(i, many)
		x.use(500, many)
	}
	n := 0
	x.all(func(int, *int) { n++ })
	if v := x.get(1000); n != 8 || v == nil || *v != 7 || x.get(500) == nil || x.get(599) == nil || x.get(598) != nil {
		t.Errorf("%d values, %v", n, x.of)
	}
	if _, fresh := x.use(1000, many); fresh || len(x.ports) != 6 {
		t.Errorf("%d ports", len(x.ports))
	}
}

// open opens a connection from the n-th network function.
func (g *rig) open(n int) net.Conn {
	g.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(at(n))}}
	c, err := d.Dial("tcp", g.cfg.Listen)
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

// However many ask for however much, what is remembered is bounded.
func TestBounded(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Endpoints, c.Instances = 3, 10 })
	for n := 5; n <= 20; n++ {
		g.register(n, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF, sbi.NFType(fmt.Sprintf("T%d", n))} })
	}
	_, found, _ := g.discover(1, sbi.AMF, sbi.UDM, "")
	if len(found.NFInstances) == 0 {
		t.Error("nothing found")
	}
	for i := range 3 * mostSearches / 2 {
		g.proxy.mu.Lock()
		if len(g.proxy.searches) >= mostSearches {
			clear(g.proxy.searches)
		}
		g.proxy.searches[fmt.Sprint(i)] = &search{}
		g.proxy.mu.Unlock()
	}
	g.discover(1, sbi.AMF, sbi.UDM, "&preferred-locality=x")
	g.proxy.mu.Lock()
	defer g.proxy.mu.Unlock()
	if len(g.proxy.book) > 10 || len(g.proxy.endpoints) > 3 || len(g.proxy.searches) > mostSearches {
		t.Errorf("%d instances, %d endpoints, %d searches", len(g.proxy.book), len(g.proxy.endpoints), len(g.proxy.searches))
	}
}

// TestManySearches: one who asks for many things forgets his own, not what others have asked.
func TestManySearches(t *testing.T) {
	all := searches{}
	add := func(by string, i int, octets int) {
		if len(all) >= mostSearches {
			makeRoom(all, one)
		}
		s := &search{by: by, until: int64(i)}
		all[fmt.Sprint(by, i)] = s
		all.note(s, &sbi.SearchResult{Raw: []sbi.Instance{{Text: make([]byte, octets)}}})
	}
	for i := range 10 {
		add("quiet", i, 100)
	}
	for i := range mostSearches + 100 {
		add("many", i, 1)
	}
	for i := range 5 {
		add("long", i, mostResults/4)
	}
	quiet := 0
	for _, s := range all {
		if s.by == "quiet" {
			quiet++
		}
	}
	if quiet != 10 || len(all) > mostSearches || all["many0"] != nil || all["long0"] != nil || all["long4"] == nil {
		t.Errorf("%d of 10 searches left, %d in all", quiet, len(all))
	}
}

// FuzzFront: no request makes the front panic, or learn what the NRF has not
// taken.
func FuzzFront(f *testing.F) {
	f.Add("GET", "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&snssais=[]", "")
	f.Add("PUT", "/nnrf-nfm/v1/nf-instances/"+id(1), profile(1, sbi.UDM))
	f.Add("PATCH", "/nnrf-nfm/v1/nf-instances/"+id(1), `[{"op":"replace","path":"/load","value":1}]`)
	f.Add("DELETE", "/nnrf-nfm/v1/nf-instances/"+id(1), "")
	f.Add("POST", "/nudm-main/v1/x", "{}")
	g := newRig(f)
	f.Fuzz(func(t *testing.T, method, target, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		r := &http.Request{Method: method, URL: u, Host: "nrf", Proto: "HTTP/2.0", ProtoMajor: 2, Header: http.Header{}, RemoteAddr: at(1) + ":1", Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
		w := httptest.NewRecorder()
		g.front.ServeHTTP(w, r.WithContext(t.Context()))
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("status %d", w.Code)
		}
	})
}
