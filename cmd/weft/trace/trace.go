package trace

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/flow/trace"
)

// options are the flags that make the packet.
type options struct {
	tcpSrc, tcpDst uint16
	udpSrc, udpDst uint16
	arp            bool
	ipv6           bool
	dscp           uint8
	ethDst         string
}

func (o *options) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Uint16Var(&o.tcpDst, "tcp-dst", 0, "a TCP SYN to this port")
	f.Uint16Var(&o.tcpSrc, "tcp-src", 0, "a TCP SYN from this port")
	f.Uint16Var(&o.udpDst, "udp-dst", 0, "a UDP packet to this port")
	f.Uint16Var(&o.udpSrc, "udp-src", 0, "a UDP packet from this port")
	f.BoolVar(&o.arp, "arp", false, "an ARP request for B's address")
	f.BoolVarP(&o.ipv6, "ipv6", "6", false, "over IPv6, where a host has both addresses")
	f.Uint8Var(&o.dscp, "dscp", 0, "differentiated services code point")
	f.StringVar(&o.ethDst, "eth-dst", "", "Ethernet destination, if not that of B")
}

// request returns what the controller is asked, or what is wrong with it.
func (o *options) request(src, dst string) (*api.TracePacketRequest, error) {
	for _, text := range []string{src, dst} {
		if !trace.NamesHost(text) {
			return nil, fmt.Errorf("%s: want a host by Ethernet or IP address", text)
		}
	}
	if o.ethDst != "" {
		if _, err := flow.ParseMAC(o.ethDst); err != nil {
			return nil, fmt.Errorf("--eth-dst: %w", err)
		}
	}
	return &api.TracePacketRequest{
		Src: src, Dst: dst, TcpSrc: uint32(o.tcpSrc), TcpDst: uint32(o.tcpDst), UdpSrc: uint32(o.udpSrc), UdpDst: uint32(o.udpDst),
		Arp: o.arp, Ipv6: o.ipv6, Dscp: uint32(o.dscp), EthDst: o.ethDst,
	}, nil
}

func Command() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	var o options
	cmd := &cobra.Command{
		Use:   "trace A B",
		Short: "Follow a packet from host A to host B through the real flow tables",
		Long: `Follow a packet from host A to host B through the flow tables as the switches
have them now: at each switch the entry that matches, its counters and actions,
and where the packet goes from there, until it arrives, or why it does not. Then
it also lists the ports that take no traffic, why, and what would make them.
Nothing is sent. Hosts are named by Ethernet or IP address.

The packet is an ICMP echo request, or whatever the flags make of it. Between
subnets that the controller routes, give the router's address by --eth-dst.
The exit status is not zero if the packet does not arrive.`,
		Example: `  weft trace 10.0.0.1 10.0.0.8
  weft trace fd00::1 fd00::8 --tcp-dst 443
  weft trace 02:00:00:00:00:01 02:00:00:00:00:08 --udp-dst 53 -o json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := o.request(args[0], args[1])
			if err != nil {
				return cli.Usagef(cmd, "%v", err)
			}
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			t, err := c.TracePacket(c.Ctx, req)
			if err != nil {
				return cli.AsUsage(cmd, err)
			}
			if err := out.Print(cmd, resultOf(t), func(w *cli.Table) { table(w, t) }); err != nil {
				return err
			}
			if !t.Arrives {
				return errors.New("the packet does not arrive: " + t.Verdict)
			}
			return nil
		},
	}
	r.Flags(cmd)
	o.flags(cmd)
	out.Flag(cmd)
	return cmd
}

// result is what weft trace prints as data.
type result struct {
	Packet  string              `json:"packet"`
	Enters  string              `json:"enters"`
	Steps   []step              `json:"steps"`
	Arrives bool                `json:"arrives"`
	Verdict string              `json:"verdict"`
	Idle    []get.PortExplained `json:"idle,omitempty"`
}

// step is one table of one switch that the packet has gone through.
type step struct {
	Hop     uint32       `json:"hop"`
	Switch  string       `json:"switch"`
	InPort  uint32       `json:"in_port"`
	Table   uint32       `json:"table"`
	Entry   *cli.Message `json:"entry"` // nil: none matches
	Actions string       `json:"actions"`
	Next    []string     `json:"next"`
	Notes   []string     `json:"notes,omitempty"`
}

func resultOf(t *api.PacketTrace) *result {
	r := &result{Packet: t.Packet, Enters: t.Enters, Steps: []step{}, Arrives: t.Arrives, Verdict: t.Verdict}
	for _, s := range t.Steps {
		one := step{Hop: s.Hop, Switch: s.Switch, InPort: s.InPort, Table: s.Table, Actions: s.Actions, Next: append([]string{}, s.Next...), Notes: s.Notes}
		if s.Entry != nil {
			one.Entry = &cli.Message{Message: s.Entry}
		}
		r.Steps = append(r.Steps, one)
	}
	for _, p := range t.Idle {
		r.Idle = append(r.Idle, get.PortExplained{
			Switch: p.Dpid, Port: p.Port, Role: p.Role, Traffic: p.TakesTraffic, Cause: p.Cause, Reason: p.Reason, Remedy: p.Remedy, Until: p.Until,
		})
	}
	return r
}

func table(t *cli.Table, r *api.PacketTrace) {
	fmt.Fprintf(t, "%s, enters at %s\n\n", r.Packet, r.Enters)
	t.Row("HOP", "SWITCH", "IN", "TABLE", "PRIORITY", "MATCH", "ACTIONS", "PACKETS", "BYTES", "OWNER", "NEXT")
	var notes []string
	for _, s := range r.Steps {
		next := strings.Join(s.Next, " and ")
		if e := s.Entry; e != nil {
			t.Row(s.Hop, s.Switch, cli.Port(s.InPort), s.Table, e.Priority, cli.MatchText(e.Match), s.Actions, e.Packets, e.Bytes, e.Owner, next)
		} else {
			t.Row(s.Hop, s.Switch, cli.Port(s.InPort), s.Table, "", "no entry matches", "", "", "", "", next)
		}
		for _, n := range s.Notes {
			notes = append(notes, fmt.Sprintf("hop %d, switch %s: %s", s.Hop, s.Switch, n))
		}
	}
	fmt.Fprintln(t)
	for _, n := range notes {
		fmt.Fprintln(t, n)
	}
	for _, p := range r.Idle {
		fmt.Fprintf(t, "%s takes no traffic: %s. To mend it: %s\n", cli.Place(&api.Location{Dpid: p.Dpid, Port: p.Port}), p.Reason, p.Remedy)
	}
	if r.Arrives {
		fmt.Fprintln(t, r.Verdict)
	}
}
