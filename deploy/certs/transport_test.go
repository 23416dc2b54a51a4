package certs

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/grpc"
	"github.com/weft-sdn/weft/transport/rest"
	"github.com/weft-sdn/weft/transport/shm"
	"github.com/weft-sdn/weft/transport/ws"
)

// who answers with the identities of who asks.
type who struct{}

func (who) Call(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	return []byte(strings.Join(transport.Peer(ctx), " ")), nil
}

// TestTransports: over each transport, a worker learns who asks, wherever the
// two run, and does not speak with others.
func TestTransports(t *testing.T) {
	dir, other := authorityIn(t), authorityIn(t)
	issue(t, dir, Request{Name: "a", Hosts: []string{"node7"}}, Request{Name: "b", Services: []string{"paths"}, Hosts: []string{"node8"}})
	issue(t, other, Request{Name: "b"})
	a, b, stranger := open(t, dir, "a"), open(t, dir, "b"), open(t, other, "b")
	over := func(name string, id *Identity) transport.Transport {
		switch name {
		case "grpc":
			return grpc.New(id.Config())
		case "ws":
			return ws.New(id.Config())
		case "shm":
			return shm.New(id.Config())
		}
		return rest.New(id.Config())
	}
	for _, name := range []string{"grpc", "ws", "rest", "shm"} {
		t.Run(name, func(t *testing.T) {
			address := "127.0.0.1:0"
			if name == "shm" {
				address = "unix:" + t.TempDir() + "/s"
			}
			l, err := over(name, a).Listen(address, who{})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
			defer cancel()
			ask := func(id *Identity) (string, error) {
				c, err := over(name, id).Dial(ctx, l.Address())
				if err != nil {
					return "", err
				}
				defer c.Close()
				answer, err := c.Call(ctx, "who.Asks", nil)
				return string(answer), err
			}
			if got, err := ask(b); err != nil || !slices.Equal(strings.Fields(got), []string{"weft://worker/b", "weft://service/paths"}) {
				t.Errorf("%q %v", got, err)
			}
			if got, err := ask(stranger); err == nil {
				t.Errorf("one of another authority got %q", got)
			}
		})
	}
}
