package lab

import (
	"github.com/weft-sdn/weft/internal/document"
)

// Setup is the command that sets a host up, a line for a shell: x-setup in the lab file.
type Setup struct {
	Node    string
	Command string
}

// Text is the text of the lab file that the topology was read from; nil if it is of none.
func (t *Topology) Text() []byte { return t.text }

// Setups returns the commands that the hosts of a lab file are set up by, in its order.
func Setups(text []byte) []Setup {
	docs, _, ok := document.ReadAll(text, limits())
	if !ok || len(docs) == 0 {
		return nil
	}
	var all []Setup
	for _, hosts := range docs[0].Entries {
		if hosts.Key != "hosts" {
			continue
		}
		for _, host := range hosts.Value.Items {
			s := Setup{}
			for _, e := range host.Entries {
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
	return all
}
