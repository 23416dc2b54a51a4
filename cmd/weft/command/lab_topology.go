package command

import (
	"fmt"

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

func (s *labSource) options(cmd *cobra.Command) (topology.ReadOptions, error) {
	answers, err := topology.ParseAnswers(s.answers)
	if err != nil {
		return topology.ReadOptions{}, cli.Usagef(cmd, "--as: %v", err)
	}
	return topology.ReadOptions{Answers: answers}, nil
}

// read returns the topology named by a spec.
func (s *labSource) read(cmd *cobra.Command, spec string) (*topology.Topology, error) {
	o, err := s.options(cmd)
	if err != nil {
		return nil, err
	}
	if spec == "-" {
		text, err := document.ReadFrom(cmd.InOrStdin(), labStdin)
		if err != nil {
			return nil, err
		}
		return topology.Read(labStdin, text, o)
	}
	topo, err := topology.ResolveWith(spec, o)
	if err != nil || !s.hybrid {
		return topo, err
	}
	return topology.Hybrid(topo)
}

// labStdin is what messages call a file on standard input.
const labStdin = "standard input"

// labFile returns the text of a lab file, which is - on standard input: of one of another
// tool that of the lab file that says the same.
func (s *labSource) labFile(cmd *cobra.Command, path string) ([]byte, error) {
	o, err := s.options(cmd)
	if err != nil {
		return nil, err
	}
	var text []byte
	if path == "-" {
		path = labStdin
		text, err = document.ReadFrom(cmd.InOrStdin(), path)
	} else {
		text, err = document.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read lab file: %w", err)
	}
	file, remarks, err := topology.Import(path, text, o)
	if err != nil || file == string(text) {
		return text, err
	}
	if _, err := topology.Read(path, text, o); err != nil { // with the lines of the other tool's file
		return nil, err
	}
	for _, r := range remarks {
		fmt.Fprintln(cmd.ErrOrStderr(), "remark:", r)
	}
	return []byte(file), nil
}

// labForms completes a topology: forms, else files.
func labForms(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return topology.Forms(), cobra.ShellCompDirectiveNoSpace
}
