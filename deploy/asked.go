package deploy

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/transport"
)

// StandbyPeers returns the other instances of the service's worker, if it has
// standbys (Cluster).
func (c cluster) StandbyPeers(*local.Service) (list []string) {
	v := c.n.members.links.View.Load()
	if v.Current == nil {
		return nil
	}
	w := v.Current.InForce().Worker(v.Mine.Worker)
	if w == nil || w.Standby == 0 {
		return nil
	}
	for _, i := range v.Current.InForce().Instances() {
		if i.Worker == w.Name && i.Name != v.Mine.Name {
			list = append(list, i.Name)
		}
	}
	return list
}

// AskPeer sends a question to the service in another instance (Cluster).
func (c cluster) AskPeer(ctx context.Context, s *local.Service, instance string, question []byte) ([]byte, error) {
	var p *members.Peer
	c.n.members.mu.Lock()
	if c.n.members.current != nil {
		p = c.n.members.peers[c.n.members.current.ProcessOf(instance)]
	}
	c.n.members.mu.Unlock()
	if p == nil {
		return nil, api.Errorf(codes.Unavailable, "instance %s does not run", instance)
	}
	return p.Request(ctx, members.AskMethod, append(members.AppendBytes(nil, []byte(s.Spec.Name)), question...))
}

// answerAsked answers a question from another instance.
func (n *Node) answerAsked(req []byte) ([]byte, error) {
	r := members.Cursor{B: req}
	name := string(r.Bytes())
	if s := n.worker.Running().Service(name); r.Err == nil && s != nil {
		if answer, ok := s.AnswerAsked(r.B); ok {
			return answer, nil
		}
	}
	return nil, transport.Errorf(transport.Unavailable, "service %q is not here", name)
}
