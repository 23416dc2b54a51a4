package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// checkPolicy wants something to be done by a policy.
func checkPolicy(cmd *cobra.Command, _ []string, request proto.Message) error {
	p := request.(*api.QosSetPolicyRequest).GetPolicy()
	if l := p.GetLimit(); l != nil && l.RateKbps == 0 && l.RatePps == 0 {
		return cli.Usagef(cmd, "--burst and --remark go with --rate or --packets")
	}
	if p.GetLimit() == nil && p.MarkDscp == nil && p.Queue == nil {
		return cli.Usagef(cmd, "say what is to be done: --rate, --packets, --mark or --queue")
	}
	return nil
}

// packetsText says which packets a policy is about.
func packetsText(m proto.Message) string {
	p := m.(*api.QosPolicy)
	var words []string
	add := func(say bool, format string, args ...any) {
		if say {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(p.Host != "" && !p.ToHost, "from %s", p.Host)
	add(p.ToHost, "to %s", p.Host)
	add(p.Dpid != "" && p.Port != 0, "in by %s/%d", p.Dpid, p.Port)
	add(p.Dpid != "" && p.Port == 0, "on %s", p.Dpid)
	if k := p.Class; k != nil {
		add(k.Dscp != nil, "DSCP %d", k.GetDscp())
		add(k.Protocol != "", "%s", k.Protocol)
		add(k.SrcPort != 0, "from port %d", k.SrcPort)
		add(k.DstPort != 0, "to port %d", k.DstPort)
	}
	add(len(p.Match) > 0, "%s", cli.MatchText(p.Match))
	if len(words) == 0 {
		return "all"
	}
	return strings.Join(words, ", ")
}

// actionText says what a policy does.
func actionText(m proto.Message) string {
	p := m.(*api.QosPolicy)
	var words []string
	if l := p.Limit; l != nil {
		text := fmt.Sprintf("%d kbit/s", l.RateKbps)
		if l.RatePps != 0 {
			text = fmt.Sprintf("%d packets/s", l.RatePps)
		}
		if l.Remark != 0 {
			text += fmt.Sprintf(", beyond it drop precedence +%d", l.Remark)
		}
		words = append(words, text)
	}
	if p.MarkDscp != nil {
		words = append(words, fmt.Sprintf("mark %d", p.GetMarkDscp()))
	}
	if p.Queue != nil {
		words = append(words, fmt.Sprintf("queue %d", p.GetQueue()))
	}
	return strings.Join(words, ", ")
}

func writeQosStatus(t *cli.Table, _, answer proto.Message) {
	t.Row("POLICY", "STATE", "SWITCH", "PACKETS", "BEYOND", "REASON")
	for _, p := range answer.(*api.QosStatus).Policies {
		if len(p.Switches) == 0 {
			t.Row(p.Policy, p.State, "", "", "", p.Reason)
		}
		for _, s := range p.Switches {
			packets, beyond := any("?"), any("?")
			if s.Counted {
				packets, beyond = s.Packets, s.BeyondPackets
			}
			t.Row(p.Policy, s.State, s.Dpid, packets, beyond, s.Reason)
		}
	}
}

// failQueues fails if queues are not made yet.
func failQueues(_ *cli.Controller, _, answer proto.Message) (failed, err error) {
	if m := answer.(*api.QosQueues); m.State != "configured" {
		failed = fmt.Errorf("the queues are kept, but not made yet (%s): %s", m.State, m.Reason)
	}
	return failed, nil
}

// readQueue reads ID[:MIN[:MAX]].
func readQueue(s string) (*api.QosQueue, error) {
	wrong := fmt.Errorf("%q: want ID, ID:MIN or ID:MIN:MAX, such as 1:20M:50M", s)
	parts := strings.Split(s, ":")
	id, err := strconv.ParseUint(parts[0], 10, 32)
	if err != nil || len(parts) > 3 {
		return nil, wrong
	}
	var rates [2]uint32
	for i, part := range parts[1:] {
		var v cli.Bandwidth
		if v.Set(part) != nil || v > math.MaxUint32 {
			return nil, wrong
		}
		rates[i] = uint32(v)
	}
	return &api.QosQueue{Id: uint32(id), MinKbps: rates[0], MaxKbps: rates[1]}, nil
}
