package topology

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/internal/document"
)

// Setup is the command that sets a node up, a line for a shell: x-setup in the lab file.
type Setup struct {
	Node    string
	Command string
}

// File is the path of what the topology was read from; empty if it is of none.
func (t *Topology) File() string { return t.file }

// Text is the text of the lab file that the topology was read from; nil if it is of none.
func (t *Topology) Text() []byte { return t.text }

// Setups returns the commands that the nodes of a lab file are set up by: those of
// switches first, each in the order of the file.
func Setups(text []byte) []Setup {
	docs, _, ok := document.ReadAll(text, limits())
	if !ok || len(docs) == 0 {
		return nil
	}
	var all []Setup
	for _, list := range []string{"switches", "hosts"} {
		for _, nodes := range docs[0].Entries {
			if nodes.Key != list {
				continue
			}
			for _, node := range nodes.Value.Items {
				s := Setup{}
				for _, e := range node.Entries {
					switch {
					case !e.Value.Scalar():
					case e.Key == "name":
						s.Node = e.Value.Text
					case e.Key == forOthers+"setup":
						s.Command = e.Value.Text
					}
				}
				if s.Node != "" && s.Command != "" {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// SetupsOf returns those of the named nodes, or all if none is named.
func SetupsOf(text []byte, nodes []string) ([]Setup, error) {
	all := Setups(text)
	for _, name := range nodes {
		if !slices.ContainsFunc(all, func(s Setup) bool { return s.Node == name }) {
			return nil, fmt.Errorf("the lab's file has no x-setup of node %q", name)
		}
	}
	some := slices.DeleteFunc(all, func(s Setup) bool { return len(nodes) > 0 && !slices.Contains(nodes, s.Node) })
	if len(some) == 0 {
		return nil, errors.New("no node of the lab's file has x-setup, the command that sets it up")
	}
	return some, nil
}
