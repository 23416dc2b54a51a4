package api

// The calls of the nat service.
var (
	SetNat    = Method[SetNatRequest, NatGateway]{"nat.SetNat"}
	DeleteNat = Method[DeleteNatRequest, DeleteNatResponse]{"nat.DeleteNat"}
	ListNats  = Method[ListNatsRequest, ListNatsResponse]{"nat.ListNats"}
)
