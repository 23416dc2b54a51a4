package nf

import (
	"net/http"

	"github.com/weft-sdn/weft/sbi"
)

// UDR is the type of a unified data repository, which real UDMs ask.
const UDR sbi.NFType = "UDR"

// offered is a service of a type.
type offered struct{ name, version string }

// services are those that each type registers.
var services = map[sbi.NFType][]offered{
	sbi.AMF:  {{"namf-comm", "v1"}},
	sbi.SMF:  {{"nsmf-pdusession", "v1"}},
	sbi.AUSF: {{"nausf-auth", "v1"}},
	sbi.UDM:  {{"nudm-ueau", "v1"}, {"nudm-uecm", "v1"}, {"nudm-sdm", "v2"}},
	sbi.PCF:  {{"npcf-am-policy-control", "v1"}, {"npcf-smpolicycontrol", "v1"}},
	UDR:      {{"nudr-dr", "v1"}},
}

// What the instances of this package ask each other for.
var (
	authentication = target{of: sbi.AUSF, service: "nausf-auth", version: "v1"}
	vectors        = target{of: sbi.UDM, service: "nudm-ueau", version: "v1"}
	registration   = target{of: sbi.UDM, service: "nudm-uecm", version: "v1"}
	subscriber     = target{of: sbi.UDM, service: "nudm-sdm", version: "v2"}
	session        = target{of: sbi.SMF, service: "nsmf-pdusession", version: "v1"}
	accessPolicy   = target{of: sbi.PCF, service: "npcf-am-policy-control", version: "v1"}
	sessionPolicy  = target{of: sbi.PCF, service: "npcf-smpolicycontrol", version: "v1"}
)

// effect is what a request does to the resources of its producer.
type effect int

const (
	asks    effect = iota // nothing
	creates               // makes one: 201 with its Location
	acts                  // must name one
	ends                  // must name one, which is no more afterwards: 204
	settles               // like ends, and says something: 200
)

// operation is a request that a type answers.
type operation struct {
	pattern string
	effect  effect
	before  func(*Instance, *http.Request, *resource) error // asks others, of the full sequence; nil: nobody
}

// operations are the requests that each type answers.
var operations = map[sbi.NFType][]operation{
	sbi.AUSF: {
		{"POST /nausf-auth/v1/ue-authentications", creates, (*Instance).vectors},
		{"PUT /nausf-auth/v1/ue-authentications/{id}/5g-aka-confirmation", settles, nil},
	},
	sbi.UDM: {
		{"POST /nudm-ueau/v1/{ue}/security-information/generate-auth-data", asks, nil},
		{"PUT /nudm-uecm/v1/{ue}/registrations/amf-3gpp-access", asks, nil},
		{"PATCH /nudm-uecm/v1/{ue}/registrations/amf-3gpp-access", asks, nil},
		{"GET /nudm-sdm/v2/{ue}/am-data", asks, nil},
		{"GET /nudm-sdm/v2/{ue}/sm-data", asks, nil},
	},
	sbi.SMF: {
		{"POST /nsmf-pdusession/v1/sm-contexts", creates, (*Instance).policy},
		{"POST /nsmf-pdusession/v1/sm-contexts/{id}/modify", acts, nil},
		{"POST /nsmf-pdusession/v1/sm-contexts/{id}/retrieve", acts, nil},
		{"POST /nsmf-pdusession/v1/sm-contexts/{id}/release", ends, (*Instance).released},
	},
	sbi.PCF: {
		{"POST /npcf-am-policy-control/v1/policies", creates, nil},
		{"DELETE /npcf-am-policy-control/v1/policies/{id}", ends, nil},
		{"POST /npcf-smpolicycontrol/v1/sm-policies", creates, nil},
		{"POST /npcf-smpolicycontrol/v1/sm-policies/{id}/update", acts, nil},
		{"POST /npcf-smpolicycontrol/v1/sm-policies/{id}/delete", ends, nil},
	},
	sbi.AMF: {
		{"POST /namf-comm/v1/ue-contexts/{ue}/n1-n2-messages", asks, nil},
	},
}
