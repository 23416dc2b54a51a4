package deploy

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/transport"
)

// askMethod carries a question to the same service of another instance
// (weft.Ask): the service's name, then the question. It always uses gRPC,
// whatever the plan says, so that it works without the bus.
const askMethod = "deploy.Ask"

// Others returns the other instances of this instance's worker, if it has
// standbys.
func (s *service) Others() (list []string) {
	n := s.worker.node
	if n == nil {
		return nil
	}
	v := n.view.Load()
	if v.current == nil {
		return nil
	}
	w := v.current.plan.Worker(v.mine.Worker)
	if w == nil || w.Standby == 0 {
		return nil
	}
	for _, i := range v.current.plan.Instances() {
		if i.Worker == w.Name && i.Name != v.mine.Name {
			list = append(list, i.Name)
		}
	}
	return list
}

// Ask sends a question to this service in another instance.
func (s *service) Ask(ctx context.Context, instance string, question []byte) ([]byte, error) {
	n := s.worker.node
	var p *peer
	if n != nil {
		n.mu.Lock()
		if n.current != nil {
			p = n.peers[n.current.ProcessOf(instance)]
		}
		n.mu.Unlock()
	}
	if p == nil {
		return nil, api.Errorf(codes.Unavailable, "instance %s does not run", instance)
	}
	return p.request(ctx, askMethod, append(appendBytes(nil, []byte(s.spec.Name)), question...))
}

// OnAsked registers the handler of questions from other instances.
func (s *service) OnAsked(h func([]byte) []byte) {
	s.register(true, "what answers other instances", func() bool { return s.asked.CompareAndSwap(nil, &h) })
}

// answerAsked answers a question from another instance.
func (n *Node) answerAsked(req []byte) ([]byte, error) {
	r := cursor{b: req}
	name := string(r.bytes())
	if r.err == nil {
		for _, s := range n.worker.tables.Load().services {
			if h := s.asked.Load(); s.spec.Name == name && h != nil {
				return (*h)(r.b), nil
			}
		}
	}
	return nil, transport.Errorf(transport.Unavailable, "service %q is not here", name)
}
