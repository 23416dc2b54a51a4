package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/flow"
)

// flowFlags describe one flow entry.
type flowFlags struct {
	file     string
	sw       cli.DPIDFlag
	table    uint8
	priority uint16
	match    []string
	actions  []string
	write    []string
	goTo     uint8
	idle     uint16
	hard     uint16
}

const FlowFileForm = `The file is YAML or JSON, a list of entries:

  - dpid: 1
    priority: 50000
    match: {in_port: 1, eth_type: 0x0800, ipv4_dst: 10.0.0.0/24}
    actions: [set_field:02:00:00:00:00:09->eth_dst, output:3]

Further keys: table, write_actions, clear_actions, goto_table, meter, metadata,
idle_timeout and hard_timeout (seconds), flags. The priority is 32768 if left
out. What weft get flows -o yaml prints is understood, too.`

func flowAddCommand(r *cli.Remote) *cobra.Command {
	var o flowFlags
	var noWait, atomic, dry bool
	var batch string
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add flow entries, or replace those with the same table, priority and match",
		Long: `Add flow entries, or replace those with the same table, priority and match: one
by flags, or many from a file. The answer says of each whether the switch has
confirmed it. An entry without actions drops.

Files of any number of entries are sent in parts. With --atomic all entries are
added or none: none if one is wrong, or if a switch refuses one; and what has
been begun is finished, or undone, also if the controller dies meanwhile. If a
switch is away, the batch waits for it, and what it says then decides. If the
connection breaks, the command asks again what became of the batch; with --batch
another command with the same file asks, too.

` + FlowFileForm,
		Example: `  weft flow add --switch 1 --match in_port=1,eth_type=0x0806 --action output:2 --action controller
  weft flow add --switch 1 --match ipv4_dst=10.0.0.0/8,eth_type=0x0800 --priority 50000     # drop
  weft flow add -f flows.yaml --atomic
  weft flow add -f flows.yaml --atomic --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flows, err := o.entries(cmd)
			if err != nil {
				return err
			}
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			s := newFlowSender(cmd, r, c)
			defer s.progress.Stop()
			if batch != "" && !atomic {
				return cli.Usagef(cmd, "--batch %s: only with --atomic", batch)
			}
			if atomic {
				m, err := s.addAtomic(batch, flows, noWait, dry)
				s.progress.Stop()
				if m == nil {
					return cli.AsUsage(cmd, err)
				}
				return errors.Join(out.Print(cmd, m, func(t *cli.Table) { batchTable(t, m) }), err)
			}
			m, err := s.add(flows, noWait, dry)
			s.progress.Stop()
			if err != nil {
				return cli.AsUsage(cmd, err)
			}
			table := get.FlowsTable
			if dry {
				table = effectsTable
			}
			if err := out.Print(cmd, m, func(t *cli.Table) { table(t, m.Flows) }); err != nil {
				return err
			}
			failed := 0
			for _, w := range m.Flows {
				if w.State == "failed" {
					failed++
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d entries failed; the reason is beside them, and weft flow delete takes them back", failed, len(m.Flows))
			}
			return nil
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVarP(&o.actions, "action", "a", nil, "an action, such as output:2, group:1, push_vlan:0x8100, set_field:5->vlan_vid, dec_ttl; may be repeated")
	f.StringArrayVar(&o.write, "write-action", nil, "an action for the action set; may be repeated")
	f.Uint8Var(&o.goTo, "goto-table", 0, "the next table; 0 is none")
	f.Uint16Var(&o.idle, "idle-timeout", 0, "seconds without a packet after which it is removed; 0 is never")
	f.Uint16Var(&o.hard, "hard-timeout", 0, "seconds after which it is removed; 0 is never")
	f.BoolVar(&atomic, "atomic", false, "add all entries or none")
	f.StringVar(&batch, "batch", "", "name of the batch, with --atomic: a name that has been there is not added again, and the answer is what became of it")
	f.BoolVar(&noWait, "no-wait", false, "do not wait for the switches' confirmation")
	f.BoolVar(&dry, "dry-run", false, "only say what would happen")
	out.Flag(cmd)
	return cmd
}

func flowDeleteCommand(r *cli.Remote) *cobra.Command {
	var o flowFlags
	var all, dry bool
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete flow entries that were added",
		Long: `Delete flow entries that were added with weft flow add: one by switch, table,
priority and match; those of a file; or all, of one switch or of every switch.

` + FlowFileForm,
		Example: `  weft flow delete --switch 1 --match in_port=1,eth_type=0x0806
  weft flow delete -f flows.yaml
  weft flow delete --all --switch 1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req := &api.DeleteFlowsRequest{DryRun: dry}
			switch {
			case all && (o.file != "" || len(o.match) > 0 || cmd.Flags().Changed("priority")):
				return cli.Usagef(cmd, "--all goes with --switch only")
			case all:
				if req.AllOf = o.sw.Text; req.AllOf == "" {
					req.AllOf = "all"
				}
			default:
				var err error
				if req.Flows, err = o.entries(cmd); err != nil {
					return err
				}
			}
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			s := newFlowSender(cmd, r, c)
			defer s.progress.Stop()
			m := &api.DeleteFlowsResponse{}
			if req.AllOf == "" {
				m, err = s.delete(req.Flows, dry)
			} else {
				if !dry {
					s.progress.Doing("deleting all entries")
				}
				m, err = c.DeleteFlows(c.Ctx, req)
			}
			s.progress.Stop()
			if err != nil {
				return cli.AsUsage(cmd, err)
			}
			if err := out.Print(cmd, m, func(t *cli.Table) {
				if dry {
					effectsTable(t, m.Flows)
					return
				}
				fmt.Fprintf(t, "%s deleted\n", cli.Several(m.Deleted, "entry", "entries"))
			}); err != nil {
				return err
			}
			if n := len(req.Flows); int(m.Deleted) < n {
				return fmt.Errorf("%d of %d entries were not there; weft get flows --owner operator lists those that are", n-int(m.Deleted), n)
			}
			return nil
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all entries that were added")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would happen; of all entries it lists 1000")
	out.Flag(cmd)
	return cmd
}

func (o *flowFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "file of entries (YAML or JSON); - is standard input")
	f.VarP(&o.sw, "switch", "s", "the switch")
	f.Uint8VarP(&o.table, "table", "t", 0, "the table")
	f.Uint16VarP(&o.priority, "priority", "p", flow.PriorityOperator, "the priority, 0 to 65535")
	f.StringArrayVarP(&o.match, "match", "m", nil, "the match, as field=value,...; may be repeated; left out, it matches every packet")
	cmd.MarkFlagFilename("file", "yaml", "yml", "json")
}

// entries returns the entries that flags or file describe, checked.
func (o *flowFlags) entries(cmd *cobra.Command) ([]*api.FlowEntry, error) {
	if o.file != "" {
		for _, name := range []string{"switch", "table", "priority", "match", "action", "write-action", "goto-table", "idle-timeout", "hard-timeout"} {
			if cmd.Flags().Changed(name) {
				return nil, cli.Usagef(cmd, "--%s and --file: the file says it all", name)
			}
		}
		return ReadFlowFile(o.file, cmd.InOrStdin())
	}
	if o.sw.Text == "" {
		return nil, cli.Usagef(cmd, "name the switch with --switch, or give a file with --file")
	}
	match, err := flow.ParseMatchString(strings.Join(o.match, ","))
	if err != nil {
		return nil, cli.Usagef(cmd, "--match: %v", err)
	}
	f := &api.FlowEntry{
		Dpid: o.sw.Text, Table: uint32(o.table), Priority: uint32(o.priority), Match: match.Text(),
		Actions: o.actions, WriteActions: o.write, GotoTable: uint32(o.goTo), IdleTimeout: uint32(o.idle), HardTimeout: uint32(o.hard),
	}
	if _, err := flow.ParseActionStrings(o.actions); err != nil {
		return nil, cli.Usagef(cmd, "--action: %v", err)
	}
	if _, err := flow.ParseActionStrings(o.write); err != nil {
		return nil, cli.Usagef(cmd, "--write-action: %v", err)
	}
	if err := checkEntry(f); err != nil {
		return nil, cli.Usagef(cmd, "%v", err)
	}
	return []*api.FlowEntry{f}, nil
}

// checkEntry returns what is wrong with an entry, whose switch may be a name that the controller
// knows.
func checkEntry(f *api.FlowEntry) error {
	sw, err := cli.SwitchText(f.Dpid)
	if err != nil {
		return err
	}
	c := proto.CloneOf(f)
	if c.Dpid = sw; sw == f.Dpid {
		if _, err := flow.ParseDPID(sw); err != nil {
			c.Dpid = "1" // any
		}
	}
	_, _, err = c.Entry()
	return err
}

// errNoFlows is a file without entries.
var errNoFlows = errors.New("no flow entries in it; want a list of entries, or flows: with such a list")
