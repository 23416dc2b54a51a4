package scp_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/nf"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/services/scp"
	"github.com/weft-sdn/weft/services/scp/scptest"
	"github.com/weft-sdn/weft/wefttest"
)

// TestConformance plays the cases of the front of the service scp with the NRF of weft nf: those for which neither
// time nor the NRF's answers need be simulated.
func TestConformance(t *testing.T) {
	played := 0
	for _, c := range scptest.Read(t, "../../../services/scp") {
		if !c.For("nf") || c.Simulated() {
			continue
		}
		played++
		t.Run(c.File+"/"+c.Name, func(t *testing.T) {
			t.Parallel()
			wefttest.RunIn(t, wefttest.Pointer, scp.Spec(), func(t *testing.T, h *wefttest.Harness) {
				scptest.Play(t, c, newPlayed(t, h, c))
			})
		})
	}
	if played < 90 {
		t.Errorf("%d cases are played", played)
	}
}

// played is the service scp with the NRF of weft nf, on which a case is played.
type played struct {
	*wefttest.Harness
	t       *testing.T
	address string
	nrf     *nf.NRF
	root    string

	mu   sync.Mutex // guards the following
	vips map[string]*api.Vip
}

func newPlayed(t *testing.T, h *wefttest.Harness, c *scptest.Case) *played {
	t.Helper()
	p := &played{Harness: h, t: t, vips: map[string]*api.Vip{}}
	e, err := nf.Listen("127.0.0.1:0", nf.TLS{}, false)
	if err != nil {
		t.Fatal(err)
	}
	p.root, p.nrf = e.Root(), nf.NewNRF(e.Root(), nf.DefaultRepository(), time.Now, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, p.nrf.Handler()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	port, err := freeport.Port()
	if err != nil {
		t.Fatal(err)
	}
	p.address = fmt.Sprintf("127.0.0.2:%d", port)
	var lines strings.Builder
	fmt.Fprintf(&lines, "nrf: %s\nlisten: %s\nvips: [127.0.9.0/24]\nregistrars: [", e.Root(), p.address)
	for _, r := range c.Registrars {
		fmt.Fprintf(&lines, "%v, ", r)
	}
	lines.WriteString("]\nnames: {")
	for name, at := range c.Names {
		fmt.Fprintf(&lines, "%q: [%v], ", name, at[0])
	}
	lines.WriteString("}\n")
	h.Configure(lines.String())
	wefttest.Fake(h, api.ListVips, p.listVips)
	wefttest.Fake(h, api.SetOwnedVip, p.setVip)
	wefttest.Fake(h, api.DeleteOwnedVip, p.deleteVip)
	wefttest.Fake(h, api.ListPairs, func(context.Context, *api.ListPairsRequest) (*api.ListPairsResponse, error) {
		return &api.ListPairsResponse{}, nil
	})
	wefttest.Fake(h, api.ReadFlows, func(context.Context, *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
		return &api.ReadFlowsResponse{}, nil
	})
	h.Start()
	p.awaitFront()
	return p
}

// awaitFront waits until the front serves.
func (p *played) awaitFront() {
	p.t.Helper()
	testwait.Until(p.t, "the front serves", func() bool { return p.get().Front == "intercepting" })
}

func (p *played) listVips(context.Context, *api.ListVipsRequest) (*api.ListVipsResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	resp := &api.ListVipsResponse{}
	for _, name := range slices.Sorted(maps.Keys(p.vips)) {
		v := proto.CloneOf(p.vips[name])
		for _, m := range v.Pool {
			m.Health = "up"
		}
		resp.Vips = append(resp.Vips, v)
	}
	return resp, nil
}

func (p *played) setVip(_ context.Context, req *api.SetOwnedVipRequest) (*api.Vip, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := proto.CloneOf(req.Vip)
	v.Owner = req.Owner
	p.vips[v.Name] = v
	return proto.CloneOf(v), nil
}

func (p *played) deleteVip(_ context.Context, req *api.DeleteOwnedVipRequest) (*api.DeleteVipResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.vips, req.Name)
	return &api.DeleteVipResponse{}, nil
}

func (p *played) get() *api.GetScpResponse {
	p.t.Helper()
	resp, err := wefttest.Call(p.Harness, api.GetScp, &api.GetScpRequest{})
	if err != nil {
		p.t.Fatal(err)
	}
	return resp
}

func (p *played) Address() string               { return p.address }
func (p *played) NRF() string                   { return p.root }
func (p *played) NRFFeatures() string           { return "" }
func (p *played) Functions() []*api.ScpFunction { return p.get().Functions }

func (p *played) Endpoint(instance string) bool {
	return slices.ContainsFunc(p.get().Endpoints, func(e *api.ScpEndpoint) bool { return e.Instance == instance })
}

func (p *played) WaitVIP(name string, is func(*api.Vip) bool) (v *api.Vip) {
	p.t.Helper()
	testwait.Until(p.t, "VIP "+name, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		v = p.vips[name]
		return v != nil && is(v)
	})
	return v
}

func (p *played) Place(port int, functions ...int) {
	h := &api.Host{Mac: fmt.Sprintf("02:00:00:00:00:%02x", port), At: &api.Location{Dpid: "0000000000000001", Port: uint32(port)}}
	for _, n := range functions {
		h.Ipv4 = append(h.Ipv4, scptest.At(n))
	}
	wefttest.Publish(p.Harness, api.HostChangedEvent, &api.HostChanged{Change: "learnt", Host: h})
}

func (p *played) Drain(instance string) error {
	_, err := wefttest.Call(p.Harness, api.DrainProducer, &api.DrainProducerRequest{Instance: instance})
	return err
}

func (p *played) Forget(instance string) error {
	_, err := wefttest.Call(p.Harness, api.ForgetProducer, &api.ForgetProducerRequest{Instance: instance})
	return err
}

func (p *played) Restart() {
	p.Harness.Restart()
	p.awaitFront()
}

func (p *played) NRFForgets(instance string) {
	if _, err := p.nrf.Deregister(time.Now(), instance); err != nil {
		p.t.Error(err)
	}
}
