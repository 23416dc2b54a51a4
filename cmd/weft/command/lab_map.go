package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/lab/testbed"
)

func labMapCommand() *cobra.Command {
	var file, output string
	var source labSource
	cmd := &cobra.Command{
		Use:   "map TOPOLOGY --machines FILE",
		Short: "Show on which machine each node of a lab would run",
		Long: `Show on which machine each node of a lab would run if weft lab up --machines spread it
over machines, which links would go between machines, and what each machine would get.
Nodes that the resource file places are there; the others are placed so that few links are
cut and machines get nodes by their cores. No machine is asked, and nothing is made.

A resource file, every key but name, ssh and address being optional:

  machines:
    - {name: m1, ssh: root@192.0.2.1, address: 192.0.2.1, cores: 4}
    - name: m2
      ssh: admin@m2.example.org:2222   # or a Host of ssh's configuration
      address: 192.0.2.2               # where the tunnels (VXLAN) end
      nodes: [s1, h1]                  # placed by hand
      weft: /usr/local/bin/weft        # else this program is copied there
  controller: tcp:192.0.2.9:6653       # as the machines reach it
  known_hosts: known_hosts             # of ssh; else those of its configuration
  identity: id_ed25519
  vxlan_port: 4789`,
		Example: `  weft lab map ring:10 --machines machines.yaml
  weft lab map triangle.yaml --machines machines.yaml -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: labForms,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			topo, err := source.read(cmd, args[0])
			if err != nil {
				return err
			}
			machines, err := testbed.Read(file)
			if err != nil {
				return err
			}
			is, err := testbed.Map(topo, machines)
			if err != nil {
				return err
			}
			return labPrint(cmd.OutOrStdout(), output, is, func(w *labTable) {
				w.row("MACHINE", "NODES", "LINKS CUT")
				for _, l := range is.Loads {
					w.row(l.Machine, l.Nodes, l.Cut)
				}
				fmt.Fprintln(w)
				w.row("NODE", "MACHINE", "PLACED")
				for _, p := range is.Nodes {
					w.row(p.Node, p.Machine, map[bool]string{true: "by hand"}[p.ByHand])
				}
				if len(is.Tunnels) > 0 {
					fmt.Fprintln(w)
					w.row("LINK", "VNI", "MACHINES")
				}
				for _, k := range is.Tunnels {
					w.row(k.Link, k.VNI, k.Machines[0]+" "+k.Machines[1])
				}
			})
		},
	}
	source.answersFlag(cmd)
	labMachinesFlag(cmd, &file)
	cmd.MarkFlagRequired("machines")
	labOutputFlag(cmd, &output)
	return cmd
}

func labMachinesFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "machines", "", "file of the machines over which the lab is spread (see weft lab map)")
	cmd.MarkFlagFilename("machines", "yaml", "yml")
}
