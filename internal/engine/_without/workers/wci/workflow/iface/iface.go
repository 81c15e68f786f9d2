// Package iface has what the server says of auto-scaled workers, as far as it compiles against it.
package iface

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
)

type (
	ComputeProviderType string

	ComputeProviderSpec struct {
		ProviderType  ComputeProviderType
		Config        *commonpb.Payload
		NexusEndpoint string
	}

	ScalingAlgorithmType string

	ScalingAlgorithmSpec struct {
		ScalingAlgorithm ScalingAlgorithmType
		Config           *commonpb.Payload
	}

	ScalingGroupSpec struct {
		TaskTypes []enumspb.TaskQueueType
		Compute   ComputeProviderSpec
		Scaling   *ScalingAlgorithmSpec
	}

	ScalingGroupSpecUpdate struct {
		Spec       ScalingGroupSpec
		UpdateMask []string
	}

	WorkerControllerInstanceSpec struct {
		ScalingGroupSpecs map[string]ScalingGroupSpec
	}

	QueryDescribeWorkerControllerInstanceResponse struct {
		Spec             *WorkerControllerInstanceSpec
		ValidationStatus *ValidationStatus
	}

	UpdateWorkerControllerInstanceResponse struct {
		Spec *WorkerControllerInstanceSpec
	}

	ValidationResult string

	ValidationStatus struct {
		LastValidationTime time.Time
		Status             ValidationResult
		ErrMessage         string
	}
)

const ValidationResultFailed ValidationResult = "failed"
