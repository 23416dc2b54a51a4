package api

// The calls of the qos service.
var (
	SetPolicy    = Method[QosSetPolicyRequest, QosPolicy]{"qos.SetPolicy"}
	DeletePolicy = Method[QosDeletePolicyRequest, QosDeletePolicyResponse]{"qos.DeletePolicy"}
	ListPolicies = Method[QosListPoliciesRequest, QosListPoliciesResponse]{"qos.ListPolicies"}
	GetQosStatus = Method[QosGetStatusRequest, QosStatus]{"qos.GetStatus"}
	SetQueues    = Method[QosSetQueuesRequest, QosQueues]{"qos.SetQueues"}
	DeleteQueues = Method[QosDeleteQueuesRequest, QosDeleteQueuesResponse]{"qos.DeleteQueues"}
	ListQueues   = Method[QosListQueuesRequest, QosListQueuesResponse]{"qos.ListQueues"}
)
