package policy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// tableOf returns how messages of a type are written.
func tableOf(d protoreflect.MessageDescriptor) *api.Table {
	return proto.GetExtension(d.Options(), api.E_Table).(*api.Table)
}

// column is a column of a table: its header, and the template of its cells.
type column struct{ header, template string }

// columnsOf returns the columns that a message type has: one for each plain field, if the
// .proto file does not say.
func columnsOf(d protoreflect.MessageDescriptor) (list []column) {
	given := tableOf(d).GetColumns()
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); len(given) == 0 && f.Message() == nil {
			list = append(list, column{strings.ToUpper(string(f.Name())), "{" + string(f.Name()) + "}"})
		}
	}
	for _, text := range given {
		header, template, given := strings.Cut(text, "=")
		if !given {
			template = "{" + strings.ReplaceAll(strings.ToLower(header), " ", "_") + "}"
		}
		list = append(list, column{header, template})
	}
	return list
}

// writeTable writes messages of one type for people.
func writeTable(t *cli.Table, d protoreflect.MessageDescriptor, list []protoreflect.Message) {
	table := tableOf(d)
	columns := columnsOf(d)
	row := func(cell func(column) string) {
		cells := make([]any, len(columns))
		for i, c := range columns {
			cells[i] = cell(c)
		}
		t.Row(cells...)
	}
	head := func() { row(func(c column) string { return c.header }) }
	if table.GetBelow() == "" {
		head()
	}
	for i, m := range list {
		s := scope{Message: m, rows: protoreflect.Name(table.GetRows())}
		n := 1
		if f := d.Fields().ByName(s.rows); f != nil {
			n = m.Get(f).List().Len()
		}
		if table.GetBelow() != "" {
			if i > 0 {
				fmt.Fprintln(t)
			}
			head()
		}
		for s.n = range n {
			row(func(c column) string { return s.expand(c.template) })
		}
		if f := d.Fields().ByName(protoreflect.Name(table.GetBelow())); f != nil {
			writeTable(t, f.Message(), messagesOf(m.Get(f).List()))
		}
	}
}

// writeList writes the table of a list of an answer.
func writeList(t *cli.Table, answer proto.Message, name protoreflect.Name) {
	f := answer.ProtoReflect().Descriptor().Fields().ByName(name)
	writeTable(t, f.Message(), messagesOf(answer.ProtoReflect().Get(f).List()))
}

func messagesOf(l protoreflect.List) (list []protoreflect.Message) {
	for i := range l.Len() {
		list = append(list, l.Get(i).Message())
	}
	return list
}

// writeAnswer writes an answer for people: itself as a table, or the tables of its
// lists, a blank line between; all but the first only if there is something in them.
func writeAnswer(t *cli.Table, m protoreflect.Message) {
	table := tableOf(m.Descriptor())
	if len(table.GetColumns()) > 0 {
		writeTable(t, m.Descriptor(), []protoreflect.Message{m})
		return
	}
	fmt.Fprint(t, scope{Message: m}.expand(table.GetHead()))
	tables, shown := 0, 0
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !f.IsList() || f.Message() == nil || len(tableOf(f.Message()).GetColumns()) == 0 {
			continue
		}
		list := messagesOf(m.Get(f).List())
		if tables++; tables > 1 && len(list) == 0 {
			continue
		} else if tables > 1 {
			fmt.Fprintln(t)
		}
		writeTable(t, f.Message(), list)
		shown += len(list)
	}
	if tables == 0 && table.GetHead() == "" {
		writePlain(t, m)
	}
	if f := fields.ByName("total"); f != nil && int(m.Get(f).Uint()) > shown {
		fmt.Fprintf(t, "\n%d of %d; --limit shows more\n", shown, m.Get(f).Uint())
	}
	fmt.Fprint(t, scope{Message: m}.expand(table.GetFoot()))
}
