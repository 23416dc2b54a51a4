package policy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
)

// readFunction reads copies of a function: SWITCH:PORT[,SWITCH:PORT], with + between.
func readFunction(text string) (*api.ChainFunction, error) {
	f := &api.ChainFunction{}
	for _, one := range strings.Split(text, "+") {
		p := &api.ChainCopy{}
		in, out, two := strings.Cut(one, ",")
		for _, at := range []struct {
			text string
			to   **api.Location
		}{{in, &p.In}, {out, &p.Out}} {
			if at.text == "" && at.to == &p.Out && !two {
				continue
			}
			_, l, err := get.ParseElement(at.text)
			if err == nil && l == nil {
				err = fmt.Errorf("%q: want SWITCH:PORT", at.text)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
			*at.to = l
		}
		f.Copies = append(f.Copies, p)
	}
	return f, nil
}

// functionsText writes the functions of a chain.
func functionsText(m proto.Message) string {
	var via []string
	for _, f := range m.(*api.ServiceChain).Functions {
		var copies []string
		for _, p := range f.Copies {
			text := cli.Place(p.In)
			if p.Out != nil {
				text += "," + cli.Place(p.Out)
			}
			if !p.Alive {
				text += " (dead)"
			}
			copies = append(copies, text)
		}
		via = append(via, strings.Join(copies, "+"))
	}
	return strings.Join(via, " ")
}
