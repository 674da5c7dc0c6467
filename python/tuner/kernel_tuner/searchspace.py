"""`Searchspace`: the valid configurations of a space as a list."""

from __future__ import annotations

import random
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import restrictions as rules
from .util import default_block_size_names

Config = Tuple[Any, ...]


class Searchspace:
    """The valid configurations of parameters and restrictions, in the order of a complete enumeration."""

    def __init__(
        self,
        tune_params: Mapping[str, Sequence[Any]],
        restrictions: Any,
        max_threads: int,
        block_size_names: Sequence[str] = tuple(default_block_size_names),
        **_: Any,
    ) -> None:
        self.tune_params = {name: list(values) for name, values in tune_params.items()}
        self.restrictions = rules.read(restrictions, self.tune_params)
        self.param_names = list(self.tune_params)
        valid = rules.valid_configurations(self.tune_params, self.restrictions, block_size_names, max_threads)
        #: Configurations as tuples.
        self.list: List[Config] = [tuple(params.values()) for params in valid]
        self._index: Dict[Config, int] = {config: place for place, config in enumerate(self.list)}

    @property
    def size(self) -> int:
        """Number of valid configurations."""
        return len(self.list)

    def get_list_dict(self) -> Dict[Config, int]:
        """Returns the index of each configuration."""
        return self._index

    def is_param_config_valid(self, param_config: Config) -> bool:
        """Reports whether a configuration is valid."""
        return tuple(param_config) in self._index

    def get_param_config_index(self, param_config: Config) -> Optional[int]:
        """Returns the index of a configuration; None if it is not valid."""
        return self._index.get(tuple(param_config))

    def get_param_indices(self, param_config: Config) -> Config:
        """Returns the indices of a configuration's values in the lists of its parameters."""
        return tuple(values.index(value) for values, value in zip(self.tune_params.values(), param_config))

    def get_random_sample_indices(self, num_samples: int) -> Any:
        """Returns the indices of `num_samples` different configurations."""
        if num_samples > self.size:
            raise ValueError(
                f"The number of samples requested ({num_samples}) is greater than the searchspace size ({self.size})"
            )
        return np.array(random.sample(range(self.size), num_samples), dtype=np.int64)

    def get_random_sample(self, num_samples: int) -> List[Config]:
        """Returns `num_samples` different configurations."""
        return [self.list[place] for place in self.get_random_sample_indices(num_samples)]
