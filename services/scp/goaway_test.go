package scp

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/sbi"
)

// parting starts a server that answers 201 to one request of each HTTP/2 connection, and ends
// the connection at the next one, which it does not look at, as servers do whose connections
// have been idle for too long.
func parting(t *testing.T) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go part(c)
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

func part(c net.Conn) {
	defer c.Close()
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	if _, err := io.CopyN(io.Discard, c, int64(len(preface))); err != nil {
		return
	}
	send := func(kind, flags, stream byte, text string) {
		_, _ = c.Write(append([]byte{0, 0, byte(len(text)), kind, flags, 0, 0, 0, stream}, text...))
	}
	const data, headers, settings, goAway, ends = 0, 1, 4, 7, 1
	send(settings, 0, 0, "")
	for frame := make([]byte, 9); ; {
		if _, err := io.ReadFull(c, frame); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(frame[0])<<16+int64(frame[1])<<8+int64(frame[2])); err != nil {
			return
		}
		switch kind, flags, stream := frame[3], frame[4], frame[8]; {
		case kind == settings && flags == 0:
			send(settings, 1, 0, "")
		case kind == headers && stream > 1:
			send(goAway, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x00") // without an error, after stream 1
			return
		case (kind == headers || kind == data) && flags&ends != 0:
			send(headers, 4|ends, 1, "\x08\x03201")
		}
	}
}

// What the front passes on is not lost to a server that ends a connection while a request is
// on its way: an NRF, or a producer.
func TestConnectionsThatEnd(t *testing.T) {
	nrf, udm := parting(t), parting(t)
	g := newRig(t, func(c *Config) { c.NRF = "http://" + nrf.String() })
	port := int(udm.Port())
	g.host(1, 5)
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) {
		p.IPv4Addresses, p.NFServices[0].IPEndPoints[0] = []string{"127.0.0.1"}, sbi.IPEndPoint{IPv4Address: "127.0.0.1", Port: &port}
	})
	for range 5 {
		for path, header := range map[string][]string{
			"/nnrf-nfm/v1/subscriptions": nil, "/oauth2/token": nil, "/nudm-main/v1/x": forUDM,
		} {
			if resp, body := g.do(1, "POST", path, `{"nfStatusNotificationUri": "http://127.0.1.1:80/x"}`, header...); resp.StatusCode != http.StatusCreated {
				t.Errorf("%s: %s %s", path, resp.Status, body)
			}
		}
		g.register(1, sbi.AMF)
	}
}

// An NRF that lists its instances only to those with an access token is asked no more often
// than others, and is no fault.
func TestListNeedsToken(t *testing.T) {
	g := newRig(t)
	g.handler.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	if !g.proxy.survey(t.Context(), g.front.nrf) {
		t.Error("it is asked again at once")
	}
	g.proxy.mu.Lock()
	defer g.proxy.mu.Unlock()
	if !strings.Contains(g.proxy.nrf, "does not list its instances to the front: status 401") {
		t.Errorf("it says %q", g.proxy.nrf)
	}
}
