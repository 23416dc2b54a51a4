package scp

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/sbi"
)

// TestLeave: at its end the front lets new connections pass it by, and cuts no request.
func TestLeave(t *testing.T) {
	g := newRig(t, func(c *Config) { c.NRFTimeout = time.Minute })
	g.front.drain = testwait.Limit
	g.vip(nrfVip, func(v *api.Vip) bool { return v.Pool[0].State == "" })
	g.nrf.set(func(n *fakeNRF) { n.wait = make(chan struct{}) })
	answered := make(chan int, 1)
	go func() {
		resp, _ := g.do(1, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(1), profile(1, sbi.AMF))
		answered <- resp.StatusCode
	}()
	g.eventually("a request is under way", func() (is bool) {
		g.nrf.set(func(n *fakeNRF) { is = n.waits })
		return is
	})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		g.stop()
	}()
	g.vip(nrfVip, func(v *api.Vip) bool { return v.Pool[0].State == "draining" })
	if resp, _ := g.do(2, "GET", "/nobody", ""); resp.StatusCode != 404 {
		t.Errorf("a connection that comes all the same: status %d", resp.StatusCode)
	}
	g.nrf.set(func(n *fakeNRF) { close(n.wait); n.wait = nil })
	if status := <-answered; status != 201 {
		t.Errorf("the request under way: status %d", status)
	}
	<-stopped
	if list, _ := g.back.list(t.Context()); slices.ContainsFunc(list, func(v *api.Vip) bool { return v.Name == nrfVip }) {
		t.Error("the balancer leads consumers to a front that has ended")
	}
	g.start()
	g.vip(nrfVip, func(v *api.Vip) bool { return v.Pool[0].State == "" })
	if !g.proxy.knows(id(1)) {
		t.Error("what was registered at the end is not known")
	}
}

// TestWireLeave: when a front without a host ends, a request that is under way goes on, and what
// comes new reaches the NRF itself.
func TestWireLeave(t *testing.T) {
	n := newNetwork(t, false)
	n.front.drain = testwait.Limit
	n.register(5, sbi.UDM)
	n.register(2, sbi.AMF)
	if status, body, err := n.do(2, "GET", discoverUDM, ""); status != 200 || strings.Contains(body, id(5)) {
		t.Fatalf("by the front: %d %s %v", status, body, err)
	}
	text := profile(3, sbi.AMF, func(p *sbi.NFProfile) { p.IPv4Addresses, p.NFServices = []string{n.addr(3).String()}, nil })
	rest, more := io.Pipe()
	answered := make(chan int, 1)
	web := n.host(3).web(n.wire.nrf)
	defer web.CloseIdleConnections()
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), "PUT", n.cfg.NRF+"/nnrf-nfm/v1/nf-instances/"+id(3), io.MultiReader(strings.NewReader(text[:20]), rest))
		r.Header.Set("Content-Type", "application/json")
		resp, err := web.RoundTrip(r)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	n.eventually("a request is under way", func() bool { return n.front.busy.Load() > 0 })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.stop()
	}()
	n.eventually("the front ends", n.wire.leaving.Load)
	if status, body, err := n.do(2, "GET", discoverUDM, ""); status != 200 || !strings.Contains(body, id(5)) {
		t.Errorf("by the NRF: %d %s %v", status, body, err)
	}
	_, _ = io.WriteString(more, text[20:])
	more.Close()
	if status := <-answered; status != 201 || !n.proxy.knows(id(3)) {
		t.Errorf("the request under way: %d, known to the front: %v", status, n.proxy.knows(id(3)))
	}
	<-stopped
	n.stop = func() {}
	if n.wire.open.Load() || n.wire.leaving.Load() {
		t.Error("it has ended, and takes packets")
	}
}
