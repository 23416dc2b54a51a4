package scp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/sbi"
)

// Who asks for few is answered so, and nobody else.
func TestLimitIsOfOneRequest(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Endpoints = 1 })
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	g.register(6, sbi.UDM)
	for _, c := range []struct {
		more string
		want int
	}{{"&limit=1", 1}, {"", 2}, {"&limit=1", 1}} {
		if _, found, _ := g.discover(1, sbi.AMF, sbi.UDM, c.more); len(found.NFInstances) != c.want {
			t.Errorf("%q: found %d, want %d", c.more, len(found.NFInstances), c.want)
		}
	}
}

// A parameter that nobody here knows may choose among instances, so the NRF answers;
// preferences, and what the requester can do, choose among none.
func TestUnknownParameters(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM)
	for more, own := range map[string]bool{
		"&hnrf-uri=http%3A%2F%2Fhome": true, "&complex-query=%7B%7D": true, "&of-a-later-release=1": true,
		"&requester-features=1": false, "&preferred-tai=%7B%7D": false, "&max-payload-size=124": false,
	} {
		_, found, _ := g.discover(1, sbi.AMF, sbi.UDM, more)
		if len(found.NFInstances) != 1 || (found.NFInstances[0].NFInstanceID == id(5)) != own {
			t.Errorf("%s: found %v", more, found.NFInstances)
		}
	}
}

// slowNRF does not answer, for two seconds each time.
type slowNRF struct {
	*rig
	asked int
}

func (n *slowNRF) search(context.Context) (*sbi.SearchResult, error) {
	n.asked++
	n.now.Add(int64(2 * time.Second))
	return nil, unreachable(context.DeadlineExceeded)
}

func (n *slowNRF) profile(context.Context, string) ([]byte, error) {
	return nil, context.DeadlineExceeded
}

// While the NRF does not answer, only the first of those who ask waits for it, and
// all get the same answer.
func TestSlowNRFIsWaitedForOnce(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM)
	for target, known := range map[sbi.NFType]bool{sbi.UDM: true, sbi.PCF: false} {
		n := &slowNRF{rig: g}
		for range 3 {
			q := &sbi.Query{TargetNFType: target, Requester: sbi.Requester{NFType: sbi.AMF}}
			if a, err := g.proxy.discover(t.Context(), q, asker{}, n, g.now.Load); (err == nil) != known {
				t.Errorf("%s: %v, %v", target, a, err)
			}
		}
		if n.asked != 1 {
			t.Errorf("%s: the NRF was asked %d times", target, n.asked)
		}
	}
}

// Clients that offer to leave HTTP, as curl --http2 does, are served; what they do
// wrong, or give up, is not the NRF's fault.
func TestClientsFaults(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM)
	c := g.open(5)
	defer c.Close()
	_, _ = io.WriteString(c, "GET /nnrf-nfm/v1/nf-instances/"+id(5)+" HTTP/1.1\r\nHost: nrf\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n")
	answer := make([]byte, 12)
	_ = c.SetReadDeadline(time.Now().Add(testwait.Limit))
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 200" {
		t.Errorf("with Upgrade: %q, %v", answer, err)
	}
	if resp, _ := g.do(5, http.MethodPost, "/nnrf-nfm/v1/subscriptions", strings.Repeat("x", 2<<20)); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("too much: %s", resp.Status)
	}
	g.proxy.mu.Lock()
	defer g.proxy.mu.Unlock()
	if g.proxy.nrf != "ok" {
		t.Errorf("the NRF: %s", g.proxy.nrf)
	}
}

// Whoever asks for all slices there could be takes no room from other types.
func TestSlicesLeaveRoom(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Endpoints = 4 })
	g.register(5, sbi.UDM)
	g.register(6, sbi.PCF)
	for i := range 10 {
		if status, found, _ := g.discover(1, sbi.AMF, sbi.UDM, fmt.Sprintf("&snssais=%%7B%%22sst%%22:%d%%7D", i+1)); status != 200 || len(found.NFInstances) != 1 {
			t.Errorf("slice %d: status %d, %v", i+1, status, found.NFInstances)
		}
	}
	for _, target := range []sbi.NFType{sbi.UDM, sbi.PCF} {
		if _, found, _ := g.discover(1, sbi.AMF, target, ""); len(found.NFInstances) != 1 || !strings.HasPrefix(found.NFInstances[0].IPv4Addresses[0], "127.0.9.") {
			t.Errorf("%s: %v", target, found.NFInstances)
		}
	}
}
