package bench

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/classbench"
	"github.com/weft-sdn/weft/internal/freeport"
)

// benchRulesStart starts Weft's learning switch with the firewall in front of
// it, with so many rules of the generator.
func benchRulesStart(ctx context.Context, cpus benchCPUs, rules int) (*benchSubject, error) {
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	http, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	s := &benchSubject{name: fmt.Sprintf("weft, %d firewall rules", rules), address: fmt.Sprintf("127.0.0.1:%d", port)}
	north := fmt.Sprintf("127.0.0.1:%d", http)
	if err := s.startWeft(ctx, cpus, north, benchFirewall); err != nil {
		return nil, err
	}
	if err := benchAddRules(ctx, north, rules); err != nil {
		err = s.failed(err)
		s.close()
		return nil, err
	}
	return s, nil
}

// benchLoadHosts are the addresses of the load's hosts. The rules let their
// packets in, all others do as the generator says: a packet that is kept out is
// not answered, and says nothing.
var benchLoadHosts = netip.MustParsePrefix("10.0.0.0/8")

// benchAddRules loads rules of the generator, of all its seeds in turn.
func benchAddRules(ctx context.Context, north string, n int) error {
	if n == 0 {
		return nil
	}
	conn, err := grpc.NewClient("passthrough:///"+north, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	calls := api.NewFirewallClient(conn)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var rules []*api.FirewallRule
	for i, r := range classbench.Generate(classbench.ACL, n, 1) {
		m := &api.FirewallRule{Id: fmt.Sprintf("bench-%06d", i), Priority: uint32(65000 - i%60000), Action: "allow", Match: r.Match()}
		if r.Deny && !(r.Src.Overlaps(benchLoadHosts) && r.Dst.Overlaps(benchLoadHosts)) {
			m.Action = "deny"
		}
		rules = append(rules, m)
	}
	for len(rules) > 0 {
		batch := rules[:min(len(rules), cli.FirewallBatch)]
		if _, err := calls.AddFirewallRules(ctx, &api.AddFirewallRulesRequest{Rules: batch, NoWait: true}, grpc.WaitForReady(true)); err != nil {
			return fmt.Errorf("load rules into the firewall: %w", err)
		}
		rules = rules[len(batch):]
	}
	return nil
}

// rules adds the figures of the same controller without rules.
func (r *benchReport) rules(n int, subject, without *benchSubject) {
	f := without.figures()
	r.Rules, r.WithoutRules = n, &f
	r.RulesRatio = r.ratio("rules_ratio", subject, without, benchAnswers)
}
