package command

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/lab/topology"
)

// labSource is how a command takes a topology.
type labSource struct {
	hybrid  bool
	answers []string
}

func (s *labSource) flags(cmd *cobra.Command) {
	s.answersFlag(cmd)
	cmd.Flags().BoolVar(&s.hybrid, "hybrid", false, "make every OpenFlow switch a hybrid IP/SDN node, controlled in band at the first, and every host one with a gateway (not of lab files)")
}

func (s *labSource) answersFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.answers, "as", nil, "of another tool's file: NODE=KIND, or KIND-IN-THE-FILE=KIND, what stands in for nodes that a lab cannot run, such as nokia_srlinux=router: openflow, hybrid, router, bridge, host, none; may be repeated")
}

// read returns the topology named by a spec.
func (s *labSource) read(cmd *cobra.Command, spec string) (*topology.Topology, error) {
	answers, err := topology.ParseAnswers(s.answers)
	if err != nil {
		return nil, cli.Usagef(cmd, "--as: %v", err)
	}
	o := topology.ReadOptions{Answers: answers}
	if spec == "-" {
		text, err := document.ReadFrom(os.Stdin, "standard input")
		if err != nil {
			return nil, err
		}
		return topology.Read("standard input", text, o)
	}
	topo, err := topology.ResolveWith(spec, o)
	if err != nil || !s.hybrid {
		return topo, err
	}
	return topology.Hybrid(topo)
}

// labForms completes a topology: forms, else files.
func labForms(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return topology.Forms(), cobra.ShellCompDirectiveNoSpace
}
