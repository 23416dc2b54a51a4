package apps

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/transport/port"
)

// fakeCaller is a controller with a few methods.
type fakeCaller struct{}

func (fakeCaller) Methods() []string {
	return []string{"southbound.ListSwitches", "hosts.FindHost", "flowrules.SetStanding", "paths.FindPath", "stats.ListPortStats"}
}

func (c fakeCaller) Method(name string) (func() proto.Message, bool) {
	new := map[string]func() proto.Message{
		"southbound.ListSwitches": func() proto.Message { return &api.ListSwitchesRequest{} },
		"hosts.FindHost":          func() proto.Message { return &api.FindHostRequest{} },
		"flowrules.SetStanding":   func() proto.Message { return &api.SetStandingRequest{} },
		"paths.FindPath":          func() proto.Message { return &api.FindPathRequest{} },
		"stats.ListPortStats":     func() proto.Message { return &api.ListPortStatsRequest{} },
	}[name]
	return new, new != nil
}

func (c fakeCaller) Call(ctx context.Context, method string, req proto.Message) (proto.Message, error) {
	switch method {
	case "southbound.ListSwitches":
		return &api.ListSwitchesResponse{Switches: []*api.Switch{{Dpid: "0000000000000001", Connected: true}}}, nil
	case "hosts.FindHost":
		address := req.(*api.FindHostRequest).GetAddress()
		if !strings.HasPrefix(address, "10.") {
			return nil, api.Errorf(codes.NotFound, "host %q is not known", address)
		}
		return &api.Host{Mac: "02:00:00:00:00:01", Ipv4: []string{address}}, nil
	case "paths.FindPath": // takes as long as it may
		<-ctx.Done()
		return nil, ctx.Err()
	}
	panic("out of order")
}

// fakeRuntime knows the apps that are attached.
type fakeRuntime struct {
	mu     sync.Mutex // guards what follows
	apps   map[string]AppInfo
	refuse error
}

func (r *fakeRuntime) attach(info AppInfo) (func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return nil, r.refuse
	}
	if _, there := r.apps[info.Name]; there {
		return nil, errors.New("attached twice")
	}
	r.apps[info.Name] = info
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.apps, info.Name)
	}, nil
}

func (r *fakeRuntime) find(name string) (AppInfo, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, ok := r.apps[name]
	return info, ok
}

// wait waits until an app is there.
func (r *fakeRuntime) wait(t testing.TB, name string) AppInfo {
	t.Helper()
	var info AppInfo
	testwait.Until(t, "app "+name+" attaches", func() (ok bool) { info, ok = r.find(name); return ok })
	return info
}

// leaves waits until an app is gone.
func (r *fakeRuntime) leaves(t *testing.T, name string) {
	t.Helper()
	testwait.Until(t, "app "+name+" is detached", func() bool { _, ok := r.find(name); return !ok })
}

// world is a Server on a port, with what is behind it.
type world struct {
	*Server
	runtime *fakeRuntime
	address string
}

// serve serves a Server on a port of its own: HTTP, WebSocket and gRPC alike.
func serve(t testing.TB, change func(*Config)) *world {
	t.Helper()
	w := &world{runtime: &fakeRuntime{apps: map[string]AppInfo{}}}
	c := Config{Caller: fakeCaller{}, Attach: w.runtime.attach, Limits: Limits{Timeout: 10 * time.Second}} // machines under load are slow
	if change != nil {
		change(&c)
	}
	var err error
	if w.Server, err = New(c); err != nil {
		t.Fatal(err)
	}
	p, err := port.Listen("127.0.0.1:0", port.Config{TLS: serverTLS(&c), HTTP: w.HTTP(), GRPC: w.Register})
	if err != nil {
		t.Fatal(err)
	}
	w.address = p.Address()
	t.Cleanup(func() {
		done := make(chan struct{})
		go func() { w.Close(); close(done) }()
		select {
		case <-done:
		case <-time.After(testwait.Limit):
			t.Error("Close does not return")
		}
		p.Close()
	})
	return w
}

// tcp returns a packet-in of a TCP segment.
func tcp(port uint16) *flow.PacketIn {
	f := make([]byte, 54)
	copy(f, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
	binary.BigEndian.PutUint16(f[34:], 40000)
	binary.BigEndian.PutUint16(f[36:], port)
	f[46] = 0x50
	in := &flow.PacketIn{
		Switch: 7, Time: 1e18, BufferID: flow.BufferNone, TotalLen: 54, Data: f,
		Role: flow.RoleEdge, Src: flow.Location{Switch: 7, Port: 3},
	}
	in.Key.InPort = 3
	return in
}

// batch returns packets to be decided on, to these TCP ports.
func batch(ports ...uint16) []Packet {
	var list []Packet
	for _, p := range ports {
		list = append(list, Packet{In: tcp(p), Decision: &flow.Decision{}})
	}
	return list
}

// untouched reports packets that somebody has changed.
func untouched(t *testing.T, list []Packet) {
	t.Helper()
	for i, p := range list {
		if p.Verdict != flow.Next || !p.Decision.Empty() {
			t.Errorf("packet %d has verdict %d and %d operations; want it untouched", i, p.Verdict, len(p.Decision.Ops))
		}
	}
}
