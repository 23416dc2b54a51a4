package oftest

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// actions is what lists of actions, action sets and buckets may hold.
const actions = openflow.ActionSet(1<<flow.ActionOutput | 1<<flow.ActionCopyTTLOut | 1<<flow.ActionCopyTTLIn |
	1<<flow.ActionSetMPLSTTL | 1<<flow.ActionDecMPLSTTL | 1<<flow.ActionPushVLAN | 1<<flow.ActionPopVLAN |
	1<<flow.ActionPushMPLS | 1<<flow.ActionPopMPLS | 1<<flow.ActionSetQueue | 1<<flow.ActionGroup |
	1<<flow.ActionSetNwTTL | 1<<flow.ActionDecNwTTL | 1<<flow.ActionSetField | 1<<flow.ActionPushPBB | 1<<flow.ActionPopPBB)

const (
	instructions   = openflow.InstructionSet(0b111_1110) // goto-table to meter
	instructionTo  = openflow.InstructionSet(1 << 1)     // goto-table
	tableFeatures  = 1<<16 - 1 - 1<<9 - 1<<11            // all properties that there are
	matchAllFields = flow.FieldSet(1<<flow.NumFields - 1)
	notSettable    = flow.FieldSet(1<<flow.FieldInPort | 1<<flow.FieldInPhyPort | 1<<flow.FieldMetadata | 1<<flow.FieldIPv6ExtHdr)
)

func tableName(t int) string { return fmt.Sprintf("table%d", t) }

// refuseFeatures refuses to have tables changed (§7.3.5.5).
func (s *Switch) refuseFeatures(c *conn, r *openflow.MultipartRequest) error {
	switch {
	case len(r.Features) == 0:
		return nil
	case c.role == openflow.RoleSlave:
		return refuse(openflow.ErrBadRequest, openflow.BadRequestIsSlave)
	}
	return refuse(openflow.ErrTableFeaturesFailed, openflow.TableFeaturesFailedEPerm)
}

// tableFeaturesReply says what the tables can do: all the same.
func (s *Switch) tableFeaturesReply(v openflow.Version, p *parts) {
	var maskable flow.FieldSet
	for f := range flow.NumFields {
		if f.Maskable() {
			maskable |= f.Bit()
		}
	}
	for t := range s.tables {
		f := openflow.TableFeatures{
			Table: uint8(t), Name: tableName(t), MetadataMatch: ^uint64(0), MetadataWrite: ^uint64(0),
			MaxEntries: s.maxEntries(), Given: tableFeatures,
			Instructions: instructions, InstructionsMiss: instructions,
			WriteActions: actions, WriteActionsMiss: actions, ApplyActions: actions, ApplyActionsMiss: actions,
			Match: matchAllFields, Maskable: maskable, Wildcards: matchAllFields,
			WriteSetField: matchAllFields &^ notSettable, WriteSetFieldMiss: matchAllFields &^ notSettable,
			ApplySetField: matchAllFields &^ notSettable, ApplySetFieldMiss: matchAllFields &^ notSettable,
		}
		for next := t + 1; next < len(s.tables); next++ {
			f.NextTables.Add(uint8(next))
			f.NextTablesMiss.Add(uint8(next))
		}
		if t == len(s.tables)-1 {
			f.Instructions, f.InstructionsMiss = instructions&^instructionTo, instructions&^instructionTo
		}
		p.add(v.AppendTableFeatures(nil, &f))
	}
}
