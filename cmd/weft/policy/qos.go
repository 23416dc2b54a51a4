package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/flow"
)

func qosCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "qos",
		Short: "Limit, mark and queue traffic",
		Long: `Limit, mark and queue traffic by policies, which become flow entries and meters
of the switches. A policy says which packets it is about and what is done to
them. Of the policies that a packet meets, by --order and then by name, the
first with a limit limits it, the first with a mark marks it, and the first with
a queue queues it. The controller keeps policies over restarts.`,
		Example: `  weft qos add slow-h1 --host 10.0.0.1 --rate 5000
  weft qos add voice --order 1 --protocol udp --dst-port 5060 --mark 46
  weft qos status`,
	}
	r.Flags(cmd)
	cmd.AddCommand(qosAddCommand(&r), qosDeleteCommand(&r), qosListCommand(&r), qosStatusCommand(&r), qosQueuesCommand(&r),
		policies().get(&r, "weft qos get slow-h1"), applyTyped(&r, "weft qos", "policies", func() []declared { return []declared{&typedDesired[*api.QosPolicy]{typedKind: policies()}} }))
	return cmd
}

// policies is the policies.
func policies() *typedKind[*api.QosPolicy] {
	return &typedKind[*api.QosPolicy]{
		known: "weft qos list", one: "policy", key: "policies",
		name: (*api.QosPolicy).GetName,
		list: func(c *cli.Controller) (proto.Message, error) {
			return c.ListPolicies(c.Ctx, &api.QosListPoliciesRequest{})
		},
		set: func(c *cli.Controller, m *api.QosPolicy) (*api.QosPolicy, error) {
			return c.SetPolicy(c.Ctx, &api.QosSetPolicyRequest{Policy: m})
		},
		remove: func(c *cli.Controller, m *api.QosPolicy) (cli.Deletion, error) {
			return c.DeletePolicy(c.Ctx, &api.QosDeletePolicyRequest{Name: m.Name})
		},
		table: policiesTable,
		tidy:  func(m *api.QosPolicy) { m.Meter = 0 },
	}
}

// qosFlags describe one policy.
type qosFlags struct {
	order    uint32
	match    []string
	host     string
	toHost   bool
	sw       get.DPIDFlag
	port     uint32
	dscp     uint32
	protocol string
	src, dst uint16
	rate     uint32
	packets  uint32
	burst    uint32
	remark   uint32
	mark     uint32
	queue    uint32
}

func qosAddCommand(r *cli.Remote) *cobra.Command {
	var o qosFlags
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a policy, or replace the one of that name",
		Long: `Add a policy, or replace the one of that name. Which packets it is about is said
by the flags up to --dst-port, all of which must hold; without any, all packets.
A limit counts for all packets of the policy together, on each switch alone; one
with --host is enforced where that host comes into the network only, and follows
it. Switches without meters, or with OpenFlow 1.0, refuse: weft qos status.`,
		Example: `  weft qos add slow-h1 --host 10.0.0.1 --rate 5000 --burst 500
  weft qos add port-3 --switch 1 --port 3 --packets 1000
  weft qos add web --protocol tcp --dst-port 443 --match ipv4_dst=10.0.0.0/24 --queue 1
  weft qos add voice --dscp 46 --queue 2`,
		Args: cobra.ExactArgs(1),
	}
	o.flags(cmd)
	return policies().add(r, cmd, o.policy)
}

func (o *qosFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Uint32Var(&o.order, "order", 0, "policies count by order, lowest first")
	f.StringArrayVarP(&o.match, "match", "m", nil, "fields of the packet, as field=value,...; may be repeated")
	f.StringVar(&o.host, "host", "", "packets that this host sends, by its Ethernet, IPv4 or IPv6 address")
	f.BoolVar(&o.toHost, "to-host", false, "packets to --host instead")
	f.VarP(&o.sw, "switch", "s", "on this switch only")
	f.Uint32Var(&o.port, "port", 0, "packets that come in by this port of --switch")
	f.Uint32Var(&o.dscp, "dscp", 0, "packets with this DSCP, 0 to 63")
	f.StringVar(&o.protocol, "protocol", "", "packets of tcp, udp, sctp, icmp or a number, over IPv4 and IPv6")
	f.Uint16Var(&o.src, "src-port", 0, "packets from this port of --protocol")
	f.Uint16Var(&o.dst, "dst-port", 0, "packets to this port of --protocol")
	f.Uint32Var(&o.rate, "rate", 0, "limit, kilobits per second")
	f.Uint32Var(&o.packets, "packets", 0, "limit, packets per second")
	f.Uint32Var(&o.burst, "burst", 0, "how much at once, kilobits or packets; 0 lets the switch choose")
	f.Uint32Var(&o.remark, "remark", 0, "packets beyond the limit get a drop precedence higher by 1 or 2 instead of being dropped")
	f.Uint32Var(&o.mark, "mark", 0, "give packets this DSCP, 0 to 63")
	f.Uint32Var(&o.queue, "queue", 0, "put packets into this queue of the port that they leave by")
}

// policy returns what the flags describe.
func (o *qosFlags) policy(cmd *cobra.Command, args []string) (*api.QosPolicy, error) {
	match, err := flow.ParseMatchString(strings.Join(o.match, ","))
	if err != nil {
		return nil, cli.Usagef(cmd, "--match: %v", err)
	}
	given := cmd.Flags().Changed
	p := &api.QosPolicy{Name: args[0], Order: o.order, Match: match.Text(), Host: o.host, ToHost: o.toHost, Dpid: o.sw.Text, Port: o.port}
	if given("dscp") || o.protocol != "" || o.src != 0 || o.dst != 0 {
		p.Class = &api.QosClass{Protocol: o.protocol, SrcPort: uint32(o.src), DstPort: uint32(o.dst)}
		if given("dscp") {
			p.Class.Dscp = &o.dscp
		}
	}
	if o.rate != 0 || o.packets != 0 {
		p.Limit = &api.QosLimit{RateKbps: o.rate, RatePps: o.packets, Burst: o.burst, Remark: o.remark}
	} else if o.burst != 0 || o.remark != 0 {
		return nil, cli.Usagef(cmd, "--burst and --remark go with --rate or --packets")
	}
	if given("mark") {
		p.MarkDscp = &o.mark
	}
	if given("queue") {
		p.Queue = &o.queue
	}
	if p.Limit == nil && p.MarkDscp == nil && p.Queue == nil {
		return nil, cli.Usagef(cmd, "say what is to be done: --rate, --packets, --mark or --queue")
	}
	return p, nil
}

func qosDeleteCommand(r *cli.Remote) *cobra.Command {
	return policies().delete(r, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a policy",
		Example: "  weft qos delete slow-h1",
	}, func(args []string) *api.QosPolicy { return &api.QosPolicy{Name: args[0]} })
}

func qosListCommand(r *cli.Remote) *cobra.Command {
	return policies().lists(r, &cobra.Command{
		Use:     "list [NAME]",
		Short:   "List the policies, in the order in which they count",
		Example: "  weft qos list -o json",
	})
}

func policiesTable(t *cli.Table, list []*api.QosPolicy) {
	t.Row("POLICY", "ORDER", "PACKETS", "ACTION")
	for _, p := range list {
		t.Row(p.Name, p.Order, aboutText(p), policyText(p))
	}
}

// aboutText says which packets a policy is about.
func aboutText(p *api.QosPolicy) string {
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

// policyText says what a policy does.
func policyText(p *api.QosPolicy) string {
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

func qosStatusCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "status [NAME]",
		Short: "Say how far each switch enforces the policies, with counters",
		Long: `Say how far each switch enforces the policies, or one of them, with counters
read from the switches now: PACKETS met the policy; BEYOND were more than its
limit, and dropped, or marked if it says so.`,
		Example: `  weft qos status
  weft qos status slow-h1 -o json`,
		Args: cobra.MaximumNArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.QosClient.GetStatus(c.Ctx, &api.QosGetStatusRequest{Policy: strings.Join(args, "")})
		return cli.View{Value: m, Text: func(t *cli.Table) { qosStatusTable(t, m) }}, err
	})
}

func qosStatusTable(t *cli.Table, m *api.QosStatus) {
	t.Row("POLICY", "STATE", "SWITCH", "PACKETS", "BEYOND", "REASON")
	for _, p := range m.Policies {
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
